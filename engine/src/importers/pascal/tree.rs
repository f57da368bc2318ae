//! The nesting of regions by their line numbers, for the shapes that do not record it.
//!
//! ```text
//! whole program   0 ------------------------------ 9999      or 0 - 0
//! a.c                   10 ---------- 20
//! a.c                           15 -- 20                     inside of 10 - 20
//! b.c                             16 - 18                    another file: in the whole program only
//! ```
//! As in PaScal Viewer, regions are taken by descending length (in file order where lengths are equal), and the parent is
//! the nearest earlier one that contains the lines, bounds included. Unlike there, a parent is in the same file, and
//! children are not mixed up when the input is not sorted by length.

use std::collections::HashMap;

use super::study::Region;

/// Whether lines mean the whole program.
pub(super) fn is_whole((first, last): (i64, i64)) -> bool {
    first == 0 && (last == 0 || last == 9999)
}

/// The two line numbers of a text such as `12, 14`, and whether it is written so.
pub(super) fn lines(text: &str) -> Option<((i64, i64), bool)> {
    if let Some((first, last)) = text.split_once(", ")
        && let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse())
    {
        return Some(((first, last), true));
    }
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let lines = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    // Words beside the two numbers are a name, and more numbers something else.
    let is_plain = text.bytes().all(|byte| !byte.is_ascii_alphabetic());
    (numbers.next().is_none() && is_plain).then_some((lines, false))
}

/// Gives every region its parent. `whole` is the place of the whole program, if it was measured.
pub(super) fn nest(regions: &mut [Region], whole: Option<usize>) {
    let mut order: Vec<(usize, i64, i64)> = regions
        .iter()
        .enumerate()
        .filter(|(place, _)| Some(*place) != whole)
        .filter_map(|(place, region)| region.lines.map(|(first, last)| (place, first, last)))
        .collect();
    order.sort_by_key(|(_, first, last)| std::cmp::Reverse(last.saturating_sub(*first)));
    let mut files: HashMap<Option<&str>, Vec<Taken>> = HashMap::new();
    for (turn, &(place, first, last)) in order.iter().enumerate() {
        files.entry(regions[place].file.as_deref()).or_default().push(Taken { turn, first, last });
    }
    let around: Vec<(usize, usize)> = files.into_values().flat_map(parents_within).collect();
    for (turn, parent) in around {
        regions[order[turn].0].parent = Some(order[parent].0);
    }
    for (place, region) in regions.iter_mut().enumerate() {
        if Some(place) != whole && region.parent.is_none() {
            region.parent = whole;
        }
    }
}

/// A region of a file, and when it is taken.
#[derive(Clone, Copy)]
struct Taken {
    turn: usize,
    first: i64,
    last: i64,
}

/// The turns of regions and of those around them, of one file. What contains a region begins no later and is as long at least, so that it is
/// taken before: by ascending first line, the nearest is the latest turn of those that end at its last line or behind it.
fn parents_within(mut regions: Vec<Taken>) -> Vec<(usize, usize)> {
    regions.sort_by_key(|region| (region.first, region.turn));
    let mut ends: Vec<i64> = regions.iter().map(|region| region.last).collect();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    ends.dedup();
    // A Fenwick tree of maxima: place `rank` and its predecessors are the ends from there on.
    let mut latest: Vec<Option<usize>> = vec![None; ends.len() + 1];
    let mut parents = Vec::new();
    for Taken { turn, last, .. } in regions {
        let rank = 1 + ends.partition_point(|end| *end > last);
        let mut before = rank;
        let mut parent = None;
        while before > 0 {
            parent = parent.max(latest[before]);
            before &= before - 1;
        }
        parents.extend(parent.map(|parent| (turn, parent)));
        let mut at = rank;
        while at < latest.len() {
            latest[at] = latest[at].max(Some(turn));
            at += at & at.wrapping_neg();
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_the_shortest_longer_regions_of_the_file() {
        let region = |file: &str, first, last| Region {
            lines: Some((first, last)),
            file: Some(file.to_owned()),
            ..Region::default()
        };
        // Not sorted by length, and the whole program somewhere.
        let mut regions = vec![
            region("a.c", 15, 20),
            region("a.c", 10, 20),
            region("", 0, 9999),
            region("b.c", 16, 18),
            region("a.c", 15, 20),
            region("a.c", 5, 7),
        ];
        nest(&mut regions, Some(2));
        let parents: Vec<_> = regions.iter().map(|region| region.parent).collect();
        assert_eq!(parents, [Some(1), Some(2), None, Some(2), Some(0), Some(2)]);
    }

    #[test]
    fn parents_equal_those_of_a_search_through_all_earlier_ones() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut regions: Vec<Region> = (0..random(40))
                .map(|_| {
                    let first = random(12) as i64;
                    let file = ["a.c", "b.c"][random(2) as usize].to_owned();
                    Region { lines: Some((first, first + random(9) as i64)), file: Some(file), ..Region::default() }
                })
                .collect();
            let mut order: Vec<usize> = (0..regions.len()).collect();
            let lines = |place: usize| regions[place].lines.unwrap();
            order.sort_by_key(|place| lines(*place).0 - lines(*place).1);
            let mut expected = vec![None; regions.len()];
            for (at, &place) in order.iter().enumerate() {
                let contains = |other: &&usize| {
                    let ((from, to), (first, last)) = (lines(**other), lines(place));
                    from <= first && last <= to && regions[**other].file == regions[place].file
                };
                expected[place] = order[..at].iter().rev().find(contains).copied();
            }
            nest(&mut regions, None);
            assert_eq!(regions.iter().map(|region| region.parent).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn line_ranges_are_read_as_written_and_otherwise() {
        assert_eq!(lines("12, 14"), Some(((12, 14), true)));
        assert_eq!(lines("0-0"), Some(((0, 0), false)));
        assert_eq!(lines("12,14"), Some(((12, 14), false)));
        for other in ["main", "1", "1, 2, 3", "loop 1 to 2", ""] {
            assert_eq!(lines(other), None, "{other}");
        }
    }
}
