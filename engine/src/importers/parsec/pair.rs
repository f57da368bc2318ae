//! Pairing: which end belongs to which start, by the rules of PaRSEC's own reader, so that the results agree with it.
//!
//! Ids are not unique (events of the runtime all have 0), so the rules matter:
//!
//! 1. the next event of the stream, when it ends the start;
//! 2. else the first end in time, among those of the stream that rule 1 did not take;
//! 3. else the same in the other streams, in their order: the first stream that has one wins;
//! 4. else none.
//!
//! Rules 2 and 3 take nothing away, so two starts can share an end:
//!
//! ```text
//! S1 S2 S3 E1 E2 E3, all of one id      S3-E1 (next), S1-E2 and S2-E2 (first left), E3 ends nothing
//! ```
//! Cost: linear, plus a binary search among the ends of the same id for each start that the next event does not end.

use hashbrown::HashMap;

use super::file::Event;

/// Stream and place of an event.
pub(super) type Place = (u32, u32);

/// No end.
pub(super) const UNENDED: Place = (u32::MAX, u32::MAX);

/// What belongs together.
#[derive(Debug)]
pub(super) struct Pairs {
    /// By stream and event: the end of a start.
    pub(super) ends: Vec<Vec<Place>>,
    /// By stream and event: whether an end ends anything.
    pub(super) used: Vec<Vec<bool>>,
}

/// Finds the end of every start of a file.
pub(super) fn pair(streams: &[Vec<Event>]) -> Pairs {
    let mut pairs = Pairs {
        ends: streams.iter().map(|events| vec![UNENDED; events.len()]).collect(),
        used: streams.iter().map(|events| vec![false; events.len()]).collect(),
    };
    let mut open: Vec<Place> = Vec::new();
    for (stream, events) in streams.iter().enumerate() {
        for (at, start) in events.iter().enumerate().filter(|(_, event)| event.is_start()) {
            if events.get(at + 1).is_some_and(|next| start.is_ended_by(next)) {
                pairs.ends[stream][at] = (stream as u32, at as u32 + 1);
                pairs.used[stream][at + 1] = true;
            } else {
                open.push((stream as u32, at as u32));
            }
        }
    }
    if open.is_empty() {
        return pairs;
    }
    let left = Left::of(streams, &pairs.used);
    for (stream, at) in open {
        let start = &streams[stream as usize][at as usize];
        if let Some(end) = left.first(start, stream) {
            pairs.ends[stream as usize][at as usize] = end;
            pairs.used[end.0 as usize][end.1 as usize] = true;
        }
    }
    pairs
}

/// What an event begins or ends.
type Key = (u16, u32, u64);
/// The ends on a stream: time and place, in order of time.
type EndsOfStream = (u32, Vec<(i64, u32)>);

/// The ends that their neighbours did not take, by what they end.
struct Left {
    by_key: HashMap<Key, Vec<EndsOfStream>>,
}

impl Left {
    fn of(streams: &[Vec<Event>], used: &[Vec<bool>]) -> Left {
        let mut left = Left { by_key: HashMap::new() };
        for (stream, events) in streams.iter().enumerate() {
            for (at, end) in events.iter().enumerate() {
                if end.is_start() || used[stream][at] {
                    continue;
                }
                let lists = left.by_key.entry((end.key, end.taskpool, end.id)).or_default();
                match lists.last_mut() {
                    Some((of, list)) if *of == stream as u32 => list.push((end.time, at as u32)),
                    _ => lists.push((stream as u32, vec![(end.time, at as u32)])),
                }
            }
        }
        // A clock that steps back leaves a stream out of order.
        for (_, list) in left.by_key.values_mut().flatten() {
            if !list.is_sorted() {
                list.sort_unstable();
            }
        }
        left
    }

    fn first(&self, start: &Event, own: u32) -> Option<Place> {
        let lists = self.by_key.get(&(start.key | 1, start.taskpool, start.id))?;
        let first_in = |(stream, list): &(u32, Vec<(i64, u32)>)| {
            let at = list.partition_point(|(time, _)| *time < start.time);
            list.get(at).map(|(_, event)| (*stream, *event))
        };
        let own_first = lists.iter().find(|(stream, _)| *stream == own).and_then(first_in);
        own_first.or_else(|| lists.iter().filter(|(stream, _)| *stream != own).find_map(first_in))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn stream(events: &[(u16, u64, i64)]) -> Vec<Event> {
        events.iter().map(|&(key, id, time)| Event::without_info(key, id, time)).collect()
    }

    #[test]
    fn equal_ids_share_ends_as_the_original_does() {
        let nested: Vec<(u16, u64, i64)> = (0..6).map(|time| (2 + u16::from(time > 2), 7, time)).collect();
        let pairs = pair(&[stream(&nested)]);
        assert_eq!(pairs.ends[0][..3], [(0, 4), (0, 4), (0, 3)]);
        assert_eq!(pairs.used[0][3..], [true, true, false]);
    }

    #[test]
    fn the_first_other_stream_wins_even_with_a_later_end() {
        let pairs = pair(&[stream(&[(2, 1, 5)]), stream(&[(3, 1, 2), (3, 1, 9)]), stream(&[(3, 1, 6)])]);
        assert_eq!(pairs.ends[0], [(1, 1)]);
        assert_eq!(pair(&[stream(&[(2, 1, 5), (3, 1, 4)])]).ends[0][0], UNENDED);
    }

    proptest! {
        /// The four rules, asked of every event.
        #[test]
        fn equals_the_rules_as_they_are_written(lists in vec(vec((2..6u16, 0..2u64, 0..4i64), 0..9), 1..4)) {
            // Times that mostly grow.
            let streams: Vec<Vec<Event>> = lists.iter().map(|list| {
                let timed: Vec<_> = list.iter().enumerate().map(|(at, &(key, id, time))| (key, id, at as i64 + time)).collect();
                stream(&timed)
            }).collect();
            let next = |of: usize, at: usize| {
                streams[of].get(at + 1).is_some_and(|end| streams[of][at].is_start() && streams[of][at].is_ended_by(end))
            };
            let left = |of: usize, at: usize| !(streams[of][at].is_start() || at > 0 && next(of, at - 1));
            let pairs = pair(&streams);
            for of in 0..streams.len() {
                for at in (0..streams[of].len()).filter(|&at| streams[of][at].is_start()) {
                    let start = streams[of][at];
                    let first = |other: usize| {
                        let ends = (0..streams[other].len()).filter(|&end| left(other, end) && start.is_ended_by(&streams[other][end]));
                        ends.min_by_key(|&end| (streams[other][end].time, end)).map(|end| (other as u32, end as u32))
                    };
                    let expected = if next(of, at) {
                        Some((of as u32, at as u32 + 1))
                    } else {
                        first(of).or_else(|| (0..streams.len()).filter(|&other| other != of).find_map(first))
                    };
                    prop_assert_eq!(pairs.ends[of][at], expected.unwrap_or(UNENDED));
                }
            }
        }
    }
}
