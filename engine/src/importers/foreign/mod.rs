//! Files of tools that `tq` does not read: what they are, and how to convert them into something that it reads.
//!
//! No format claims them. [`identify`] compares the beginning of a file with a table, so that an error can say "this is a
//! Perfetto trace" and what to type, instead of showing four bytes. It is called only when every format has declined, and
//! before [`super::table`] takes a JSON document or a database for rows.
//!
//! A mark is content: first bytes, the first line, keys of a JSON object, tables of an SQLite database. Of two kinds of
//! files the mark is undocumented (Nsight's reports) or only two bytes long (OTF2): there the file name decides, which can
//! do no harm, since these files are not read anyway.

mod marks;

use std::path::Path;

use marks::Mark;

use super::sqlite;
use crate::error::ImportError;
use crate::trace::Source;

/// What a file is that no format reads.
#[derive(Debug)]
pub(crate) struct Foreign {
    /// In words: `a Perfetto trace (protobuf)`.
    pub(crate) what: String,
    /// Something to type or to do.
    pub(crate) hint: String,
    /// Whether `nsys export` makes a database of it.
    pub(crate) is_nsight_report: bool,
}

/// A row of the table of beginnings.
struct Row {
    mark: Mark,
    /// Completes "this is …".
    what: &'static str,
    /// What to do, `{path}` is the file and `{stem}` its name without extension.
    hint: &'static str,
}

const NO_CONVERTER: &str =
    "nothing converts it to a format that is read; events printed as CSV become tasks with a mapping (docs/table.md)";

/// The beginnings, the surest first.
const ROWS: &[Row] = &[
    Row {
        mark: Mark::Bytes(b"\xfd7zXZ\0"),
        what: "an xz file",
        hint: "xz -dk {path} (gzip and zstd are read without that)",
    },
    Row { mark: Mark::Bzip2, what: "a bzip2 file", hint: "bunzip2 -k {path} (gzip and zstd are read without that)" },
    Row { mark: Mark::Bytes(b"PK\x03\x04"), what: "a zip archive", hint: "unzip {path}, then open what was in it" },
    Row { mark: Mark::Bytes(b"PK\x05\x06"), what: "an empty zip archive", hint: "there is nothing in it" },
    Row {
        mark: Mark::Bytes(b"7z\xbc\xaf\x27\x1c"),
        what: "a 7z archive",
        hint: "7z x {path}, then open what was in it",
    },
    Row { mark: Mark::Bytes(b"\x04\x22\x4d\x18"), what: "an lz4 file", hint: "lz4 -d {path}" },
    Row {
        mark: Mark::BytesAt(257, b"ustar"),
        what: "a tar archive",
        hint: "tar xf {path}, then open the file or the directory that was in it",
    },
    Row {
        mark: Mark::Bytes(b"version https://git-lfs.github.com/spec/"),
        what: "a pointer of Git LFS and not the file itself",
        hint: "git lfs pull",
    },
    Row {
        mark: Mark::Bytes(b"PERFILE2"),
        what: "a recording of perf (`perf.data`)",
        hint: "samples have no end and are no tasks; where it has pairs of events (sched, probes), `perf script -i {path}` prints them: as CSV rows of `begin` and `end` they are read with `table.phase` (docs/table.md)",
    },
    Row {
        mark: Mark::Bytes(b"NVR\0"),
        what: "a report of Nsight Compute",
        hint: "it holds metrics of single kernels; the time line of a program is recorded by `nsys profile`",
    },
    Row {
        mark: Mark::Extension(&["nsys-rep", "qdrep", "qdstrm"]),
        what: "a report of Nsight Systems",
        hint: "nsys export --type sqlite --output {stem}.sqlite {path}, then open {stem}.sqlite",
    },
    Row { mark: Mark::Tracy, what: "a capture of Tracy", hint: TRACY_HINT },
    Row { mark: Mark::Otf2, what: "a part of an OTF2 archive (Score-P, Vampir)", hint: OTF2_HINT },
    Row { mark: Mark::Bytes(b"#Paraver ("), what: "a Paraver trace", hint: NO_CONVERTER },
    Row { mark: Mark::Bytes(b"PROJECTIONS-RECORD"), what: "a log of Projections (Charm++)", hint: NO_CONVERTER },
    Row { mark: Mark::Line("PROJECTIONS_ID"), what: "a summary of Projections (Charm++)", hint: NO_CONVERTER },
    Row { mark: Mark::Bytes(b"HPCTOOLKIT"), what: "a part of an HPCToolkit database", hint: NO_CONVERTER },
    Row { mark: Mark::Bytes(b"HPCRUN-"), what: "a measurement of HPCToolkit", hint: NO_CONVERTER },
    Row { mark: Mark::Contains("<HPCToolkitExperiment"), what: "an experiment of HPCToolkit", hint: NO_CONVERTER },
    Row {
        mark: Mark::Extension(&["vtune", "amplxe"]),
        what: "a part of a VTune result",
        hint: "vtune -report timeline and the like print CSV, which becomes tasks with a mapping (docs/table.md)",
    },
    Row {
        mark: Mark::Bytes(b"FLR\0"),
        what: "a recording of Java Flight Recorder",
        hint: "jfr print --json {path} prints its events; rows of it become tasks with a mapping (docs/table.md)",
    },
    Row {
        mark: Mark::GoTrace,
        what: "an execution trace of Go",
        hint: "go tool trace {path} shows it; its /trace page's JSON is a Chrome trace, which is read",
    },
    Row { mark: Mark::Bytes(b"\xc1\x1f\xfc\xc1"), what: "a stream of a CTF trace (LTTng, babeltrace)", hint: CTF_HINT },
    Row { mark: Mark::Bytes(b"\xc1\xfc\x1f\xc1"), what: "a stream of a CTF trace (LTTng, babeltrace)", hint: CTF_HINT },
    Row { mark: Mark::Bytes(b"/* CTF 1."), what: "the description of a CTF trace (LTTng, babeltrace)", hint: CTF_HINT },
    Row {
        mark: Mark::Bytes(b"\x75\xd1\x1d\x57"),
        what: "the description of a CTF trace (LTTng, babeltrace)",
        hint: CTF_HINT,
    },
    Row {
        mark: Mark::Bytes(b"Ftrace!"),
        what: "a recording of uftrace",
        hint: "uftrace dump --chrome > {stem}.json, which is read",
    },
    Row {
        mark: Mark::Bytes(b"\x17\x08Dtracing"),
        what: "a recording of trace-cmd",
        hint: "trace-cmd report {path} prints its events, which as CSV become tasks with a mapping (docs/table.md)",
    },
    Row {
        mark: Mark::Line("# callgrind format"),
        what: "a profile of Callgrind",
        hint: "sums of functions are no tasks: there are no times in it",
    },
    Row {
        mark: Mark::Line("events:"),
        what: "a profile of Callgrind",
        hint: "sums of functions are no tasks: there are no times in it",
    },
    Row {
        mark: Mark::Bytes(b"FileType: BinaryLegionProf"),
        what: "a log of Legion's profiler",
        hint: "legion_prof's trace output is a Chrome trace, which is read",
    },
    Row {
        mark: Mark::XPlane,
        what: "an XPlane profile (XLA, TensorFlow, JAX)",
        hint: "open the `.trace.json.gz` that lies beside it, or write one with `jax.profiler.start_trace(dir, create_perfetto_trace=True)`",
    },
    Row {
        mark: Mark::Perfetto,
        what: "a Perfetto trace (protobuf)",
        hint: "traceconv json {path} {stem}.json, then open {stem}.json (traceconv comes with Perfetto)",
    },
    Row {
        mark: Mark::Json(marks::is_firefox),
        what: "a Firefox profile",
        hint: "samples are no tasks; nothing converts it to a format that is read",
    },
    Row {
        mark: Mark::Json(marks::is_speedscope),
        what: "a profile of speedscope",
        hint: "open what it was made of; samples are no tasks",
    },
    Row {
        mark: Mark::Json(marks::is_cpuprofile),
        what: "a CPU profile of V8 (`.cpuprofile`)",
        hint: "samples are no tasks; `node --trace-events-enabled --cpu-prof`, or the Performance panel's \"Save profile\", writes a trace, which is read",
    },
    Row {
        mark: Mark::Json(marks::is_heap_snapshot),
        what: "a heap snapshot of V8",
        hint: "objects are no tasks; the Performance panel's \"Save profile\" writes a trace, which is read",
    },
    Row {
        mark: Mark::Json(marks::is_heap_profile),
        what: "a heap profile of V8 (`.heapprofile`)",
        hint: "samples are no tasks; the Performance panel's \"Save profile\" writes a trace, which is read",
    },
    Row { mark: Mark::Json(marks::is_rocprof), what: "the JSON of rocprofv3", hint: ROCPROF_HINT },
    Row {
        mark: Mark::Json(marks::is_execution_trace),
        what: "an execution trace of PyTorch (Chakra)",
        hint: "it has no times of the GPU: open the Kineto trace that `torch.profiler` writes beside it",
    },
    Row { mark: Mark::Json(marks::is_otlp), what: "spans of OpenTelemetry (OTLP)", hint: SPANS_HINT },
    Row { mark: Mark::Json(marks::is_jaeger), what: "traces of Jaeger", hint: SPANS_HINT },
    Row {
        mark: Mark::ArrayWithoutObjects,
        what: "a JSON array without objects",
        hint: "rows are objects, in an array or on a line each, with a time such as `start_us`",
    },
    Row {
        mark: Mark::Line("# tracer:"),
        what: "a text of ftrace",
        hint: "its begins and ends as CSV become tasks with a mapping (`table.phase` in docs/table.md)",
    },
    Row { mark: Mark::Tables(&["rocpd_"]), what: "a database of rocprofv3 or rocprof (rocpd)", hint: ROCPD_HINT },
    Row {
        mark: Mark::Bytes(b"\x89HDF\r\n"),
        what: "an HDF5 file without the marks of a trace",
        hint: "PTT files of PaRSEC are read; tables of it as Parquet or CSV become tasks with a mapping (docs/table.md)",
    },
    Row { mark: Mark::Bytes(b"\x89PNG"), what: "a picture (PNG)", hint: "open the trace that it was drawn from" },
    Row { mark: Mark::Line("<svg"), what: "a picture (SVG)", hint: "open the trace that it was drawn from" },
    Row { mark: Mark::Bytes(b"%PDF-"), what: "a PDF", hint: "open the trace that it was made from" },
    Row { mark: Mark::Bytes(b"\x7fELF"), what: "a program (ELF)", hint: "open what it records when it runs" },
    Row {
        mark: Mark::Web,
        what: "a web page",
        hint: "was it saved in place of a download? A systrace page: `--from-format chrome` does not read it, its JSON does",
    },
];

const TRACY_HINT: &str = "tracy-csvexport -u {path} > {stem}.csv, then --option table.start=ns_since_start:ns \
                          --option table.duration=exec_time_ns:ns --option table.location=thread";
const OTF2_HINT: &str = "otf2-print prints its events; as CSV with begins and ends they become tasks \
                         (`table.phase` in docs/table.md)";
const CTF_HINT: &str = "babeltrace2 prints its events; as CSV with begins and ends they become tasks \
                        (`table.phase` in docs/table.md)";
const ROCPROF_HINT: &str = "rocprofv3 --output-format csv writes rows: --option table.start=Start_Timestamp:ns \
                            --option table.finish=End_Timestamp:ns --option table.name=Kernel_Name";
const SPANS_HINT: &str =
    "an object a span (`jq -c` of its spans) is a row: --option table.start=KEY:ns --option table.finish=KEY:ns";
const ROCPD_HINT: &str = "rocprofv3 --output-format csv (or `rocpd convert -f csv`) writes rows: --option table.start=Start_Timestamp:ns \
                          --option table.finish=End_Timestamp:ns --option table.name=Kernel_Name; `rpd2tracing.py` writes a Chrome trace";

/// What a file is that no format recognises, as far as its beginning tells.
pub(crate) fn identify(source: &Source) -> Option<Foreign> {
    let row = ROWS.iter().find(|row| row.mark.fits(source))?;
    Some(Foreign {
        what: row.what.to_owned(),
        hint: with_names(row.hint, source.path()),
        is_nsight_report: matches!(row.mark, Mark::Extension(["nsys-rep", ..])),
    })
}

/// The error about a file that no format recognises: what it is where that is known, else what it looks like.
pub(crate) fn refused(source: &Source) -> ImportError {
    let refused =
        |what: String, hint: String| ImportError::Unusable { path: source.path().to_owned(), what, hint: Some(hint) };
    let head = source.head();
    if let Some(foreign) = identify(source) {
        return refused(format!("this is {}, which is not read", foreign.what), foreign.hint);
    }
    if head.starts_with(sqlite::MAGIC) {
        if let Some(length) = sqlite::length(head)
            && let Some(stored) = source.known_bytes()
            && stored < length
            && sqlite::table_names(source).is_empty()
        {
            return refused(
                format!("not a readable SQLite trace: it is cut off, {stored} of {length} bytes are there"),
                "copy or export it again".to_owned(),
            );
        }
        let tables = sqlite::table_names(source);
        let which = match tables.is_empty() {
            true => "it has no tables".to_owned(),
            false => format!("its tables are {}", shown(&tables)),
        };
        let table = tables.first().map_or("TABLE", String::as_str);
        return refused(
            format!("an SQLite database without the marks of a trace; {which}"),
            format!(
                "as rows: --option table.from={table} --option table.start=COLUMN:us --option table.duration=COLUMN:us"
            ),
        );
    }
    if let Some(keys) = marks::top_level_keys(head) {
        let which = match keys.is_empty() {
            true => "it is empty".to_owned(),
            false => format!("its keys are {}", shown(&keys)),
        };
        return refused(
            format!("a JSON object without the marks of a trace; {which}"),
            "rows are objects on a line each, or in an array, with a time such as `start_us`; one object as a row needs a mapping: --option table.start=KEY:us"
                .to_owned(),
        );
    }
    if let Some(refused) = refused_as_text(source) {
        return refused;
    }
    let head: String =
        head.iter().take(24).flat_map(|&byte| std::ascii::escape_default(byte)).map(char::from).collect();
    ImportError::Unrecognised { path: source.path().to_owned(), head: format!("`{head}`") }
}

/// The error about a text that is not written as texts are read: in UTF-16, or with NUL bytes.
pub(crate) fn refused_as_text(source: &Source) -> Option<ImportError> {
    let (head, path) = (source.head(), source.path());
    let (what, hint) = if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        ("text in UTF-16, only UTF-8 is read", format!("iconv -f UTF-16 -t UTF-8 {} > utf8.csv", path.display()))
    } else if head.contains(&0) && is_mostly_text(head) {
        ("text with NUL bytes", format!("tr -d '\\000' < {} > without_nul.csv", path.display()))
    } else {
        return None;
    };
    Some(ImportError::Unusable { path: path.to_owned(), what: what.to_owned(), hint: Some(hint) })
}

/// Whether it is a text but for a few control characters.
fn is_mostly_text(head: &[u8]) -> bool {
    let others = head.iter().filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()).count();
    // The last character may be cut.
    let is_utf8 = std::str::from_utf8(head).err().is_none_or(|error| error.error_len().is_none());
    is_utf8 && others * 4 < head.len()
}

fn with_names(hint: &str, path: &Path) -> String {
    let name = path.display().to_string();
    let stem = path.with_extension("").display().to_string();
    if name == "-" {
        return hint.replace("{path}", "FILE").replace("{stem}", "FILE");
    }
    hint.replace("{path}", &name).replace("{stem}", &stem)
}

/// Some names in backticks, and how many more there are.
fn shown(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let clipped = |name: &String| format!("`{}`", name.chars().take(40).collect::<String>().escape_debug());
    let listed = names.iter().take(SHOWN).map(clipped).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
