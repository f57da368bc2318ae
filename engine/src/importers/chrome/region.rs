//! Reading a file: the container step by step, the events in blocks on several threads.
//!
//! ```text
//! {"schemaVersion":1,…,"traceEvents":[ {…},{…},… | {…},… | {…},… ],"traceName":"x"}
//! container ────────────────────────── events, in blocks ───────── container
//! ```
//! Blocks are cut where [`block::border`] guesses that an event ends. The guess is right when the block before it ends
//! between two events; by induction from the first event, so are all. Where it is wrong (an object that looks like an
//! event inside of arguments, an event longer than a block) reading starts again at the block in question, and from
//! there every block is parsed to find its border: slower, and sure.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::{self, Parsed};
use super::chunk::Ending;
use super::container::{Container, Form, Stop};
use super::file::{Recording, Shared};
use super::{BROKEN_CONTAINER, BROKEN_HEADER, HEADER_LEFT_OUT, TRUNCATED, damaged};
use crate::error::ImportError;
use crate::trace::{self, Block, Source, parse_reader};

/// Reads everything into `recording`.
pub(super) fn read(
    source: &Source,
    threads: usize,
    recording: &mut Recording,
    shared: &mut Shared,
) -> Result<(), ImportError> {
    let failed = |error| source.io_error(error);
    let mut reader = source.reader()?;
    let mut container = Container::new(&mut reader, 0);
    let Some(form) = container.open().map_err(failed)? else {
        return Err(damaged(source, "byte 0".to_owned(), "it begins neither with `[` nor with `{`".to_owned()));
    };
    if form == Form::Array {
        let begin = container.place();
        // Nothing but an end may follow the array.
        return events(source, threads, begin, form, recording, shared).map(|_| ());
    }
    let mut stop = container.next_events().map_err(failed)?;
    keep_beside(&mut container, recording);
    let mut found = false;
    loop {
        match stop {
            Stop::End => break,
            Stop::Cut => {
                let place = source.known_bytes().map_or_else(String::new, |bytes| format!("byte {bytes}: "));
                recording.stats.note(TRUNCATED, 1, || format!("{place}the text ends before its closing bracket"));
                break;
            }
            Stop::Broken(at) if found => {
                recording.stats.note(BROKEN_CONTAINER, 1, || format!("byte {at}: what follows the events is no JSON"));
                break;
            }
            Stop::Broken(at) => {
                // What describes the run cannot be read, but the events may stand behind it all the same.
                stop = container.search_events().map_err(failed)?;
                if !matches!(stop, Stop::Events(_)) {
                    return Err(damaged(source, format!("byte {at}"), "this is no JSON".to_owned()));
                }
                recording
                    .stats
                    .note(BROKEN_HEADER, 1, || format!("byte {at}: what stands before the events is no JSON"));
            }
            Stop::Events(begin) => {
                found = true;
                let after = match events(source, threads, begin, form, recording, shared)? {
                    Region::Ended => break,
                    Region::Tail(offset, tail) => walk(Container::new(tail.as_slice(), offset), recording),
                    Region::Closed(offset) => walk(Container::new(skipped(source, offset)?, offset), recording),
                };
                stop = after.map_err(failed)?;
            }
        }
    }
    if !found {
        let what = "it has no `traceEvents` with an array of events".to_owned();
        return Err(damaged(source, "its top-level keys".to_owned(), what));
    }
    Ok(())
}

fn walk<R: Read>(mut container: Container<R>, recording: &mut Recording) -> io::Result<Stop> {
    let stop = container.next_events()?;
    keep_beside(&mut container, recording);
    Ok(stop)
}

fn keep_beside<R>(container: &mut Container<R>, recording: &mut Recording) {
    recording.beside.append(&mut container.beside);
    recording.stats.note(HEADER_LEFT_OUT, container.beyond, || "more keys beside the events than are kept".to_owned());
}

/// A reader that stands at `offset`.
fn skipped(source: &Source, offset: u64) -> Result<Box<dyn Read + Send>, ImportError> {
    let mut reader = source.reader()?;
    match io::copy(&mut reader.by_ref().take(offset), &mut io::sink()) {
        Ok(_) => Ok(reader),
        // A compressed stream that breaks off says so again where it matters.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Box::new(io::empty())),
        Err(error) => Err(source.io_error(error)),
    }
}

/// How an array of events ended.
enum Region {
    /// With the text.
    Ended,
    /// Closed; the container goes on with these bytes, which stand at that place.
    Tail(u64, Vec<u8>),
    /// Closed; the container goes on at this byte.
    Closed(u64),
}

/// What the next step is after a pass over blocks.
enum Pass {
    Region(Region),
    /// A block did not begin where an event begins: read on from there with care.
    Again(u64),
}

fn events(
    source: &Source,
    threads: usize,
    begin: u64,
    form: Form,
    recording: &mut Recording,
    shared: &mut Shared,
) -> Result<Region, ImportError> {
    match pass(source, threads, begin, form, false, recording, shared)? {
        Pass::Region(region) => Ok(region),
        Pass::Again(offset) => match pass(source, threads, offset, form, true, recording, shared)? {
            Pass::Region(region) => Ok(region),
            Pass::Again(offset) => {
                Err(damaged(source, format!("byte {offset}"), "no event begins here, though one should".to_owned()))
            }
        },
    }
}

fn pass(
    source: &Source,
    threads: usize,
    begin: u64,
    form: Form,
    careful: bool,
    recording: &mut Recording,
    shared: &mut Shared,
) -> Result<Pass, ImportError> {
    let reader = skipped(source, begin)?;
    // Behind the array there are no borders to wait for.
    let over = AtomicBool::new(false);
    let cut = |text: &[u8]| {
        if over.load(Ordering::Relaxed) {
            return Some(text.len());
        }
        if !careful {
            return Some(block::border(text).unwrap_or(text.len()));
        }
        match block::parse(Block { bytes: text, offset: 0, last: false }).ending {
            Ending::Border => Some(text.len()),
            Ending::Inside(at) => Some(at),
            Ending::Closed(_) => {
                over.store(true, Ordering::Relaxed);
                Some(text.len())
            }
        }
    };
    let parse = |block: Block<'_>| block::parse(Block { offset: begin + block.offset, ..block });
    let mut outcome = Pass::Region(Region::Ended);
    let mut take = |parsed: Parsed| -> Result<bool, ImportError> {
        let Parsed { records, ending, offset, last, tail } = parsed;
        match ending {
            Ending::Border => {
                if last && form == Form::Object {
                    note_truncated(recording, source, "the array of events");
                }
            }
            Ending::Inside(_) if last => note_truncated(recording, source, "an event"),
            Ending::Inside(_) => {
                outcome = Pass::Again(offset);
                return Ok(false);
            }
            Ending::Closed(at) => {
                let after = offset + at as u64 + 1;
                outcome = Pass::Region(match tail {
                    Some(tail) => Region::Tail(after, tail),
                    None => Region::Closed(after),
                });
                recording.take(records, shared)?;
                return Ok(false);
            }
        }
        recording.take(records, shared)?;
        Ok(true)
    };
    let ending = parse_reader(source, reader, threads, cut, parse, &mut take)?;
    if ending == trace::Ending::CutOff && matches!(outcome, Pass::Region(Region::Ended)) && form == Form::Array {
        note_truncated(recording, source, "the compressed stream");
    }
    Ok(outcome)
}

fn note_truncated(recording: &mut Recording, source: &Source, inside: &str) {
    // Once is enough: a cut is one place.
    if recording.stats.count(TRUNCATED.what) == 0 {
        let place = source.known_bytes().map_or_else(String::new, |bytes| format!("byte {bytes}: "));
        recording.stats.note(TRUNCATED, 1, || format!("{place}the text ends inside of {inside}"));
    }
}
