//! Reading a file: the container step by step, the events in blocks on several threads.
//!
//! ```text
//! {"schemaVersion":1,…,"traceEvents":[ {…},{…},… | {…},… | {…},… ],"traceName":"x"}
//! container ────────────────────────── events, in blocks ───────── container
//! ```
//! Blocks are cut where [`block::border`] guesses that an event ends. A guess is right when the block before the cut
//! ends between two events, provided that it began at one; by induction from the first event, all blocks are checked.
//! Where a guess is wrong (an object inside arguments that looks like an event, an event longer than a block, damage at
//! the end of a block), reading starts again at the block in question, and from there every block is parsed to find its
//! border: slower, but certain.

use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::{self, Parsed};
use super::chunk::Ending;
use super::container::{Container, Form, Further, Stop};
use super::damaged;
use super::file::{Recording, Shared};
use super::place::Next;
use super::round_trip::Written;
use crate::error::ImportError;
use crate::trace::{self, Block, Source, findings, parse_reader};

/// Reads everything into `recording`.
pub(super) fn read(
    source: &Source,
    threads: usize,
    recording: &mut Recording,
    shared: &mut Shared,
) -> Result<(), ImportError> {
    let failed = |error| source.io_error(error);
    let mut container = Container::new(source.reader()?, source.begin());
    let Some(mut form) = container.open().map_err(failed)? else {
        return Err(damaged(
            source,
            format!("byte {}", source.begin()),
            "it begins neither with `[` nor with `{`".to_owned(),
        ));
    };
    let mut arrays = 0;
    let mut stop = enter(&mut container, form).map_err(failed)?;
    if stop == Stop::End && container.was_event() {
        // An event on each line, without a bracket around them.
        recording.stats.note(findings::NO_CONTAINER, 1, || "events without a bracket before the first one".to_owned());
        container = Container::new(source.reader()?, source.begin());
        (form, stop) = (Form::Array, Stop::Events(source.begin()));
    }
    loop {
        keep_beside(&mut container, recording);
        stop = match stop {
            Stop::Events(begin) if arrays == ARRAYS_MAX => {
                let what = format!("byte {begin}: more than {ARRAYS_MAX} arrays of events; the rest is left out");
                recording.stats.note(findings::BROKEN_CONTAINER, 1, || what);
                break;
            }
            Stop::Events(begin) => {
                arrays += 1;
                match events(source, threads, begin, form, recording, shared)? {
                    Region::Ended => break,
                    Region::Tail(offset, tail) => container = Container::new(Box::new(Cursor::new(tail)), offset),
                    Region::Closed(offset) => container = Container::new(skipped(source, offset)?, offset),
                }
                match form {
                    Form::Array => Stop::End,
                    Form::Object => container.next_events().map_err(failed)?,
                }
            }
            Stop::End => match container.further().map_err(failed)? {
                Further::Nothing => break,
                Further::Container(further) => {
                    let place = container.place();
                    recording
                        .stats
                        .note(findings::SEVERAL_CONTAINERS, 1, || format!("byte {place}: read as if it were one"));
                    form = further;
                    enter(&mut container, form).map_err(failed)?
                }
                Further::Other => {
                    let place = container.place();
                    recording
                        .stats
                        .note(findings::BROKEN_CONTAINER, 1, || format!("byte {place}: the trace ended before this"));
                    break;
                }
            },
            Stop::Cut => {
                let place = end(source);
                recording
                    .stats
                    .note(findings::TRUNCATED, 1, || format!("{place}the text ends before its closing bracket"));
                break;
            }
            Stop::Broken(at) => {
                // What describes the run cannot be read, but events may stand behind it all the same.
                let found = container.search_events().map_err(failed)?;
                let is_found = matches!(found, Stop::Events(_));
                if arrays > 0 {
                    let what = format!("byte {at}: what follows the events is no JSON");
                    recording.stats.note(findings::BROKEN_CONTAINER, 1, || what);
                } else if is_found {
                    let what = format!("byte {at}: what stands before the events is no JSON");
                    recording.stats.note(findings::BROKEN_HEADER, 1, || what);
                } else {
                    return Err(damaged(source, format!("byte {at}"), "this is no JSON".to_owned()));
                }
                if !is_found {
                    break;
                }
                found
            }
        }
    }
    if arrays == 0 {
        let what = "it has no `traceEvents` with an array of events".to_owned();
        return Err(damaged(source, "its top-level keys".to_owned(), what));
    }
    Ok(())
}

/// How many arrays of events a text may have: each is found by reading the text from its start.
const ARRAYS_MAX: u32 = 64;

/// The first stop behind an opening bracket.
fn enter<R: Read>(container: &mut Container<R>, form: Form) -> io::Result<Stop> {
    match form {
        Form::Array => Ok(Stop::Events(container.place())),
        Form::Object => container.next_events(),
    }
}

fn keep_beside<R>(container: &mut Container<R>, recording: &mut Recording) {
    recording.beside.append(&mut container.beside);
    recording
        .stats
        .note(findings::HEADER_LEFT_OUT, container.beyond, || "more keys beside the events than are kept".to_owned());
}

/// A reader that stands at the byte `place` of the file.
fn skipped(source: &Source, place: u64) -> Result<Box<dyn Read + Send>, ImportError> {
    let mut reader = source.reader()?;
    match io::copy(&mut reader.by_ref().take(place - source.begin()), &mut io::sink()) {
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
    let written: Written = recording.origin.written.clone();
    // Behind the array there are no borders to wait for.
    let over = AtomicBool::new(false);
    let cut = |text: &[u8]| {
        if over.load(Ordering::Relaxed) {
            return Some(text.len());
        }
        if !careful {
            return Some(block::border(text).unwrap_or(text.len()));
        }
        match block::parse(Block { bytes: text, offset: 0, last: false }, Next::Unknown, &written).ending {
            Ending::Border => Some(text.len()),
            Ending::Inside(at) => Some(at),
            // The end stands at the beginning of a block of its own, as an event would.
            Ending::Closed(at) if at > 0 => Some(at),
            Ending::Closed(_) => {
                over.store(true, Ordering::Relaxed);
                Some(text.len())
            }
        }
    };
    let parse = |block: Block<'_>| {
        let next = match (block.last, careful) {
            (true, _) => Next::Nothing,
            (false, true) => Next::Event,
            (false, false) => Next::Unknown,
        };
        block::parse(Block { offset: begin + block.offset, ..block }, next, &written)
    };
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

/// Where the file ends, to begin a sentence with.
fn end(source: &Source) -> String {
    source.known_bytes().map_or_else(String::new, |bytes| format!("byte {}: ", source.begin() + bytes))
}

fn note_truncated(recording: &mut Recording, source: &Source, inside: &str) {
    // Once is enough: a cut is one place.
    if recording.stats.count(findings::TRUNCATED) == 0 {
        let place = end(source);
        recording.stats.note(findings::TRUNCATED, 1, || format!("{place}the text ends inside of {inside}"));
    }
}
