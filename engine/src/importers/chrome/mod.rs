//! Chrome trace events: the JSON that browsers, PyTorch (Kineto), compilers, build tools and many others write.
//!
//! ```text
//! {"schemaVersion": 1, "baseTimeNanoseconds": 1719853884000000000,                 header      container, header
//!  "traceEvents": [
//!   {"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}},              metadata    lanes
//!   {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":9,"ts":1.5,"dur":20,   complete    the columns of tasks
//!    "args":{"External id":3}},
//!   {"ph":"B","name":"step","pid":7,"tid":9,"ts":30}, {"ph":"E",…,"ts":40},         slices      slices
//!   {"ph":"b","cat":"io","id":"0x1","name":"read",…}, {"ph":"e",…},                 async       asyncs
//!   {"ph":"s","id":3,"name":"fwdbwd",…}, {"ph":"f",…,"bp":"e"},                     flows       flows
//!   {"ph":"C","name":"load","ts":5,"args":{"user":1,"system":2}},                   counters    phases
//!   {"ph":"i","name":"mark","s":"g","ts":6}                                         instants    phases
//!  ],
//!  "traceName": "trace.json"}
//! ```
//! The file may consist of the array alone, and its closing bracket may be missing.
//!
//! | the format's word | here |
//! | --- | --- |
//! | process, thread | `locations` `<pid>`, `<pid>/<tid>`; GPU streams are threads of a process that is the device |
//! | slice, complete event | a row of `tasks`; `cat` → `kind` |
//! | flow | a row of `links` of kind `flow` |
//! | `args.correlation` | a row of `links` of kind `launch` |
//!
//! Life of the data: [`region`] walks the [`container`] and cuts the events into blocks; [`block`] (any thread) turns text
//! into records with [`lex`], [`event`], [`time`] and [`phases`]; [`mod@file`] (one thread, file order) renumbers words and
//! keeps the columns; [`build`] closes what was begun, nests, links and fills the tables. Cost: [`lex`] reads each byte
//! once, only arguments are copied (those on several lines once more, without their blanks), and no tree of values is built.
//!
//! Known to be wrong in files found in the wild: see [`repair`] (strings and numbers), [`time`] (doubles), [`damage`]
//! (unescaped quotes), [`nest`] (overlaps), [`kineto`] (flows without a start).

mod asyncs;
mod block;
mod build;
mod chunk;
mod container;
mod damage;
mod event;
mod file;
mod flows;
mod header;
mod kineto;
mod lanes;
mod launches;
mod lex;
mod lists;
mod nest;
mod opened;
mod phases;
mod place;
mod recorder;
mod region;
mod repair;
mod round_trip;
mod slices;
mod syncs;
#[cfg(test)]
mod tests;
mod time;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

use self::container::{Container, Form, Stop};
use self::file::{Recording, Shared};
use self::lanes::Origin;
use self::round_trip::Written;
use super::importer::{FormatDoc, ImportContext, Importer};
use crate::error::ImportError;
use crate::trace::{RunBuilder, Source};

static DOC: FormatDoc = FormatDoc {
    name: "chrome",
    title: "Chrome trace events: PyTorch (Kineto), Chrome, Node, JAX, VizTracer, clang, Bazel and many more",
    dialects: &[
        "array form and object form, finished or not",
        "PyTorch Kineto, also the ranks of a job as a directory of one run",
        "clang -ftime-trace, JAX and TensorFlow (XProf), VizTracer, Node, Bazel, rustc, Perfetto's thread states",
    ],
    fills: "locations (processes, threads, streams, asynchronous lanes), tasks (kind = cat), links (launch, flow, operator, \
            sync), counters, events; runs.args (the header)",
    loses: "stack frames and samples beside the events; header values above 64 KiB; clock synchronisation events",
    options: &[],
};

/// Chrome trace events.
pub(super) struct Chrome;

impl Importer for Chrome {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        utf16(source.head()).is_some() || looks_like_events(source)
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        if let Some(order) = utf16(source.head()) {
            let what = format!("it is UTF-16 ({order}); JSON is UTF-8: `iconv -f {order} -t UTF-8` converts it");
            return Err(damaged(source, "byte 0".to_owned(), what));
        }
        for written in Written::of(source) {
            let mut builder = context.begin(source);
            builder.info.own_name = written.name();
            read_run(&[(source.clone(), Origin { rank: None, written })], context, &mut builder)?;
            context.finish(builder)?;
        }
        Ok(())
    }

    fn is_one_run(&self, sources: &[Source]) -> bool {
        let mut ranks = BTreeSet::new();
        sources.len() > 1
            && sources.iter().all(|source| {
                let place = header::place(source);
                place.is_kineto && place.rank.is_some_and(|rank| ranks.insert(rank))
            })
    }

    fn import_directory(
        &self,
        directory: &Path,
        sources: &[Source],
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        let mut files: Vec<(Source, Origin)> = sources
            .iter()
            .map(|source| (source.clone(), Origin { rank: header::place(source).rank, ..Origin::default() }))
            .collect();
        files.sort_by_key(|(_, origin)| origin.rank);
        let mut builder = context.begin_at(directory);
        read_run(&files, context, &mut builder)?;
        context.finish(builder)
    }
}

fn read_run(
    files: &[(Source, Origin)],
    context: &ImportContext<'_>,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let mut shared = Shared::default();
    let mut recordings = Vec::with_capacity(files.len());
    for (source, origin) in files {
        header::name_rank(&mut shared.lanes, origin.rank);
        let mut recording = Recording::new(source, origin.clone(), context.budget());
        region::read(source, context.threads, &mut recording, &mut shared)?;
        header::mark_summaries(&mut recording, &mut shared)?;
        recordings.push(recording);
    }
    build::build(recordings, shared, context.threads, builder)
}

/// The name of the byte order, if the text is UTF-16 and begins like JSON.
fn utf16(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, b'[' | b'{', 0, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, 0, b'[' | b'{', ..] => Some("UTF-16BE"),
        // Without a mark of the byte order, the zeros tell it.
        [b'[' | b'{', 0, next, 0, ..] if *next != 0 => Some("UTF-16LE"),
        [0, b'[' | b'{', 0, next, ..] if *next != 0 => Some("UTF-16BE"),
        _ => None,
    }
}

/// Whether the text is an array of events, or an object that has one. What tells may come after any amount of other things:
/// then the whole text is walked, at the speed of reading it.
fn looks_like_events(source: &Source) -> bool {
    let head = source.head();
    // An array that is damaged, or whose first event is longer than the head, is judged by what can be seen of it.
    let shows_event = || head.trim_ascii_start().starts_with(b"[") && lex::has_phase(head);
    // Memory does not fail.
    match holds_events(Container::new(head, 0)).unwrap_or(Some(false)) {
        Some(answer) => answer,
        None if shows_event() => true,
        None if source.head_is_whole() => false,
        None => source.reader().is_ok_and(|reader| matches!(holds_events(Container::new(reader, 0)), Ok(Some(true)))),
    }
}

/// Whether the text holds events; `None` when it ends before that can be told.
fn holds_events<R: Read>(mut container: Container<R>) -> io::Result<Option<bool>> {
    match container.open()? {
        Some(Form::Array) => container.holds_events(),
        Some(Form::Object) => {
            let mut stop = container.next_events()?;
            if let Stop::Broken(_) = stop {
                stop = container.search_events()?;
            }
            Ok(match stop {
                Stop::Events(_) => Some(true),
                Stop::End => Some(container.was_event()),
                Stop::Broken(_) => Some(false),
                Stop::Cut => None,
            })
        }
        None => Ok(Some(false)),
    }
}

fn damaged(source: &Source, place: String, what: String) -> ImportError {
    ImportError::Damaged { path: source.path().to_owned(), format: DOC.name, place, what }
}
