//! Synchronisation: from the work that a `cuda_sync` waits for to the `cuda_sync`.

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::{HashMap, HashSet};

use super::chunk::UNFINISHED;
use super::event;
use super::file::{Recording, Shared};
use super::kineto::{Known, Label, Link};
use super::lanes::Lanes;
use super::launches::Launches;
use crate::error::ImportError;
use crate::trace::List;

/// From the last work that a `cuda_sync` waits for to the `cuda_sync`.
///
/// ```text
/// {"name":"Stream Sync","args":{"stream":7,"correlation":1512}}                     all work of the stream so far
/// {"name":"Context Sync","args":{"stream":-1,"correlation":1549}}                   all work of the device so far
/// {"name":"Event Sync","args":{"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":1533,…}}
/// {"name":"Stream Wait Event", the same}                                            the work before that cudaEventRecord
/// ```
pub(super) fn links(
    recording: &Recording,
    launches: &Launches,
    shared: &Shared,
    links: &mut List<Link>,
) -> Result<(), ImportError> {
    if recording.pieces.iter().all(|piece| piece.syncs.len() == 0) {
        return Ok(());
    }
    let mut records = HashSet::new();
    for piece in &recording.pieces {
        for row in piece.syncs.values()?.iter() {
            records.extend(recorded(&piece.args.get(*row as usize)?));
        }
    }
    let records = launches.last_calls(&records)?;
    let work = Work::of(recording, launches)?;
    for piece in &recording.pieces {
        for row in piece.syncs.values()?.iter() {
            if let Some(link) = sync_link(piece.first + row, recording, &records, shared, &work)? {
                links.push(link)?;
            }
        }
    }
    Ok(())
}

/// The correlation of the `cudaEventRecord` that a wait is for.
fn recorded(args: &str) -> Option<i64> {
    let id = event::get(args, "wait_on_cuda_event_record_corr_id")?;
    event::integer(id.as_bytes()).filter(|id| *id > 0)
}

/// Work by stream: when it was launched, and its task, in the order of its launch.
struct Work<'r> {
    streams: HashMap<i32, Vec<(i64, u32)>>,
    recording: &'r Recording,
    _memory: MemoryReservation,
}

impl<'r> Work<'r> {
    fn of(recording: &'r Recording, launches: &Launches) -> Result<Work<'r>, ImportError> {
        let memory = recording.room.hold();
        // Vectors grow by doubling.
        recording.room.resize(&memory, 2 * launches.len() * size_of::<(i64, u32)>())?;
        let mut streams: HashMap<i32, Vec<(i64, u32)>> = HashMap::new();
        for launched in launches.iter() {
            let launched = launched?;
            if !launched.is_sync {
                streams.entry(launched.lane).or_default().push((launched.call_start, launched.row));
            }
        }
        for stream in streams.values_mut() {
            stream.sort_unstable();
        }
        Ok(Work { streams, recording, _memory: memory })
    }

    /// The last work of a stream that was launched by `time` and is done when `done` has passed.
    fn last(&self, stream: i32, time: i64, done: i64) -> Result<Option<u32>, ImportError> {
        let Some(stream) = self.streams.get(&stream) else { return Ok(None) };
        let launched = &stream[..stream.partition_point(|(launch, _)| *launch <= time)];
        for &(_, row) in launched.iter().rev() {
            let finish = self.recording.finish(row)?;
            if finish != UNFINISHED && finish <= done {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

fn sync_link(
    row: u32,
    recording: &Recording,
    records: &HashMap<i64, i64>,
    shared: &Shared,
    work: &Work<'_>,
) -> Result<Option<Link>, ImportError> {
    let args = recording.args(row)?;
    let number = |key: &str| event::get(&args, key).and_then(|value| event::integer(value.as_bytes()));
    let name = shared.names.word(recording.name(row)?);
    let (start, finish) = (recording.start(row)?, recording.finish(row)?);
    let done = if finish == UNFINISHED { i64::MAX } else { finish };
    let lane = recording.lane(row)?;
    let stream_of = |key: &str| {
        let number = number(key).filter(|id| *id >= 0)?;
        shared.lanes.sibling(lane, &number.to_string())
    };
    let source = match name {
        "Event Sync" | "Stream Wait Event" => {
            let record = recorded(&args).and_then(|record| records.get(&record));
            match record.zip(stream_of("wait_on_stream")) {
                // A stream waits without blocking anyone: its work may be done later.
                Some((&recorded_at, stream)) => {
                    let done = if name == "Event Sync" { done } else { i64::MAX };
                    work.last(stream, recorded_at, done)?
                }
                None => None,
            }
        }
        "Context Sync" => {
            let mut latest = None;
            for stream in shared.lanes.siblings(lane) {
                if let Some(row) = work.last(stream, start, done)? {
                    latest = latest.max(Some((recording.finish(row)?, row)));
                }
            }
            latest.map(|(_, row)| row)
        }
        _ => match stream_of("stream") {
            Some(stream) => work.last(stream, start, done)?,
            None => None,
        },
    };
    let name = match name {
        "Event Sync" => Known::EventSync,
        "Stream Wait Event" => Known::StreamWaitEvent,
        "Context Sync" => Known::ContextSync,
        _ => Known::StreamSync,
    };
    let (kind, name) = (Label::Word(Known::Sync), Label::Word(name));
    Ok(source.map(|source| Link { source, target: row, kind, name, args: Label::None }))
}

impl Lanes {
    /// The lane beside `lane` of that tid.
    fn sibling(&self, lane: i32, tid: &str) -> Option<i32> {
        let parent = self.all[lane as usize].parent?;
        self.find(&format!("{}/{tid}", self.all[parent as usize].location))
    }

    /// All lanes of the process of `lane`.
    fn siblings(&self, lane: i32) -> impl Iterator<Item = i32> {
        let parent = self.all[lane as usize].parent;
        (0..self.all.len() as i32).filter(move |&other| parent.is_some() && self.all[other as usize].parent == parent)
    }
}
