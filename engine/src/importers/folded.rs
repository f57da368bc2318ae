//! Folded stacks, as flame graphs are drawn from: `stackcollapse-*.pl`, inferno, py-spy, async-profiler, bpftrace, `tq`'s own
//! `call_tree`.
//!
//! ```text
//! worker;solve;gemm 42             a stack from the outside in, a blank, how often or how long: a line each
//! worker;solve;std::max<int, int> 7      blanks within frames are theirs; the weight is what follows the last one
//! worker;read;vfs_read_[k] 1.5     marks of perf: [k] the operating system's kernel, [i] inlined, [j] compiled just in time, [w] the waker's stack
//! ```
//! Life of the data: lines, one after the other → each frame becomes a task on the only lane, as long as the weights of its
//! lines, laid end to end in the order of the file; outer frames that a line shares with the line before are the same task →
//! `tasks`, nested by construction. This is the picture that `flamegraph.pl --flamechart` draws of the file; of a sorted file it
//! is the flame graph.
//!
//! Seen in files in the wild: CR LF, empty lines, weights with decimals. The unit of the weights (samples, bytes, microseconds)
//! is recorded nowhere. Differential stacks have two counts; the first of them ends up in the name of the last frame.
//!
//! Cost: 60 bytes a task, and each frame is looked up once. This is the importer to copy for a small format.

use std::io::{BufRead, BufReader, Read};

use super::importer::{FormatDoc, ImportContext, Importer, OptionDoc};
use tq_udfs::ticks::Tick;

use crate::error::ImportError;
use crate::tables;
use crate::time::{Decimal, REACH};
use crate::trace::{Location, RunBuilder, Source, Words, findings};

const UNIT_OPTION: &str = "folded.unit";

static DOC: FormatDoc = FormatDoc {
    name: "folded",
    title: "Folded stacks of flame graph tools: stackcollapse, inferno, py-spy, async-profiler, bpftrace",
    dialects: &["a stack and its weight a line, `main;solve;gemm 42`", "perf's marks of frames, `vfs_read_[k]`"],
    fills: "tasks (a frame each, nested, laid end to end in the order of the file; neighbouring lines share what they have in common \
            from the outside in; kind is frame, os_kernel, inlined, jit or waker), one location",
    loses: "nothing of a line; the format never knew when a stack was seen, on which thread, and what its weights count",
    options: &[OptionDoc {
        key: UNIT_OPTION,
        description: "what a weight of 1 is: ns, us, ms or s; without it, times are weights and shown as such",
    }],
};

/// A line is not longer than this; what is, is no line of this format.
const LINE_BYTES: u64 = 1 << 20;
/// The only location.
const LANE: &str = "stacks";

/// The format.
pub(super) struct Folded;

impl Importer for Folded {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    /// The first line of the head is a stack with its weight, so are three of four, and one of them has two frames: one torn line
    /// is counted when it is read, with its place. A first line that the head does not hold is read. Rows of numbers between semicolons are a table, and so is what has a heading.
    fn recognise(&self, source: &Source) -> bool {
        let head = source.head();
        let whole = if source.head_is_whole() { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(0) };
        let lines =
            || head[..whole].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let is_stack = |line: &[u8]| {
            let outermost =
                |stack: &[u8]| stack.split(|byte| *byte == b';').next().is_some_and(|frame| !is_number(frame));
            split(line).is_some_and(|(stack, weight)| is_number(weight) && outermost(stack))
                && !line.iter().any(u8::is_ascii_control)
        };
        if whole == 0 && head.contains(&b';') {
            let line = first_line(source).unwrap_or_default();
            return line.contains(&b';') && is_stack(line.trim_ascii());
        }
        let (stacks, all) = (lines().filter(|line| is_stack(line)).count(), lines().count());
        lines().next().is_some_and(is_stack)
            && 4 * stacks >= 3 * all
            && lines().any(|line| line.contains(&b';') && is_stack(line))
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let unit = context.options.get(UNIT_OPTION).map(String::as_str);
        let shift = match unit {
            None | Some("ns") => 0,
            Some("us") => 3,
            Some("ms") => 6,
            Some("s") => 9,
            Some(other) => {
                let (option, value) = (UNIT_OPTION.to_owned(), other.to_owned());
                return Err(ImportError::BadOption {
                    option,
                    value,
                    what: "one of ns, us, ms, s is needed".to_owned(),
                });
            }
        };
        let mut builder = context.begin(source);
        builder.info.tick = unit.is_none().then_some(Tick::Weight);
        let stacks = read(source, shift, &mut builder)?;
        if unit.is_none() {
            let example = || {
                "a weight of 1 is a tick, whatever was counted: --option folded.unit=us says that it is a time"
                    .to_owned()
            };
            builder.stats.note(findings::WEIGHTS_AS_TICKS, stacks.lines, example);
        }
        stacks.append(&mut builder)?;
        context.finish(builder)
    }
}

/// A line that is longer than the head of a source.
fn first_line(source: &Source) -> Result<Vec<u8>, ImportError> {
    let mut line = vec![];
    let mut reader = Read::take(BufReader::new(source.reader()?), LINE_BYTES);
    reader.read_until(b'\n', &mut line).map_err(|error| source.io_error(error))?;
    Ok(line)
}

/// Reads the lines.
fn read(source: &Source, shift: i64, builder: &mut RunBuilder) -> Result<Stacks, ImportError> {
    let memory = source.budget().hold(format!("reading {}", source.path().display()));
    let mut reader = BufReader::with_capacity(1 << 20, source.reader()?);
    let stats = &mut builder.stats;
    let mut stacks = Stacks::default();
    let (mut line, mut number, mut is_rest) = (Vec::new(), 0u64, false);
    loop {
        line.clear();
        match Read::take(&mut reader, LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // A compressed file that was cut off: what is whole is kept.
            Err(error) if stacks.lines == 0 => return Err(source.io_error(error)),
            Err(error) => {
                stats.note(findings::TRUNCATED, 1, || format!("after line {number}: {error}"));
                break;
            }
        }
        let is_whole = line.ends_with(b"\n");
        // The rest of a line that was too long for one.
        if std::mem::replace(&mut is_rest, !is_whole) {
            continue;
        }
        number += 1;
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        stats.records(1);
        let shown = || format!("line {number}: `{}`", String::from_utf8_lossy(&text[..text.len().min(80)]));
        let is_line = is_whole || (line.len() as u64) < LINE_BYTES;
        let parsed = split(text).filter(|_| is_line).and_then(|(stack, weight)| {
            let weight = Decimal::parse(weight).ok().filter(|weight| !weight.is_negative())?;
            Some((stack, weight.ticks(shift).ok()?))
        });
        let added = parsed.is_some_and(|(stack, (weight, is_exact))| {
            let stack = String::from_utf8_lossy(stack);
            stats.note(findings::NOT_UTF8, u64::from(matches!(stack, std::borrow::Cow::Owned(_))), shown);
            stats.note(findings::ROUNDED, u64::from(!is_exact), shown);
            stacks.add(&stack, weight)
        });
        if !added {
            stats.left_out(findings::BAD_LINES, 1, shown);
            continue;
        }
        stats.note(findings::NO_LINE_END, u64::from(!is_whole), shown);
        if stacks.memory() > memory.size() {
            let wanted = stacks.memory() + (1 << 20);
            memory.try_resize(wanted).map_err(|error| ImportError::Memory {
                path: source.path().to_owned(),
                what: error.strip_backtrace(),
            })?;
        }
    }
    stats.became_others(findings::STACK_LINES, stacks.lines, || format!("they became {} tasks", stacks.starts.len()));
    Ok(stacks)
}

/// A line without blanks around it as its stack and its weight.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    Some((line[..blank].trim_ascii(), &line[blank + 1..]))
}

/// `42`, `1.5`.
fn is_number(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit) && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// The name of a frame, and its kind, which tools of perf write behind it.
fn frame(text: &str) -> (&str, &'static str) {
    let kind = |mark| match mark {
        // A `kernel` is what a GPU runs, in all formats.
        "k]" => Some("os_kernel"),
        "i]" => Some("inlined"),
        "j]" => Some("jit"),
        "w]" => Some("waker"),
        _ => None,
    };
    let marked = text.rsplit_once("_[").and_then(|(name, mark)| Some((name, kind(mark)?)));
    marked.unwrap_or((text, "frame"))
}

/// The tasks, as columns.
#[derive(Default)]
struct Stacks {
    /// Lines that became tasks, or more of their length.
    lines: u64,
    words: Words,
    names: Vec<i32>,
    kinds: Vec<&'static str>,
    parents: Vec<Option<i64>>,
    depths: Vec<i64>,
    starts: Vec<i64>,
    finishes: Vec<i64>,
    /// The tasks of the last line, the outermost first.
    open: Vec<usize>,
    /// Where the last line ends.
    now: i64,
}

impl Stacks {
    /// Lays a line behind the last one; `false` when it would end beyond what a time can be.
    fn add(&mut self, stack: &str, weight: i64) -> bool {
        let Some(finish) = self.now.checked_add(weight).filter(|finish| REACH.contains(finish)) else { return false };
        let mut depth = 0;
        for text in stack.split(';') {
            let (name, kind) = frame(text);
            let name = self.words.intern(name);
            let is_same = |task: &usize| self.names[*task] == name && self.kinds[*task] == kind;
            if !self.open.get(depth).is_some_and(is_same) {
                // From here on inwards nothing is shared.
                self.open.truncate(depth);
                self.parents.push(self.open.last().map(|around| *around as i64));
                self.open.push(self.starts.len());
                self.names.push(name);
                self.kinds.push(kind);
                self.depths.push(depth as i64);
                self.starts.push(self.now);
                self.finishes.push(finish);
            }
            depth += 1;
        }
        self.open.truncate(depth);
        for task in &self.open {
            self.finishes[*task] = finish;
        }
        self.now = finish;
        self.lines += 1;
        true
    }

    fn memory(&self) -> usize {
        let task = 4 * size_of::<i64>() + size_of::<Option<i64>>() + size_of::<&str>() + size_of::<i32>();
        self.starts.capacity() * task + self.words.memory()
    }

    /// Fills the tables. A line is not one row: it becomes several, or lengthens those of the line before.
    fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        builder.info.time_unit = "weights";
        *builder.words(tables::Tasks::name) = self.words;
        builder.append_derived(tables::Tasks {
            parent: self.parents.clone().into(),
            stack_parent: self.parents.into(),
            name: self.names.into(),
            kind: self.kinds.into_iter().collect(),
            role: "work".into(),
            location: LANE.into(),
            start: self.starts.into(),
            finish: self.finishes.into(),
            depth: self.depths.into(),
            ..Default::default()
        })?;
        builder.location(&Location {
            location: LANE,
            parent: None,
            kind: "thread",
            name: None,
            process: None,
            role: "compute",
            clock: None,
            sort_index: None,
            args: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stand_behind_the_last_blank() {
        let check = |line: &str, expected: Option<(&str, &str)>| {
            assert_eq!(
                split(line.as_bytes()),
                expected.map(|(stack, weight)| (stack.as_bytes(), weight.as_bytes())),
                "{line}"
            );
        };
        check("a;b 42", Some(("a;b", "42")));
        check("a;f(int, int) 1.5", Some(("a;f(int, int)", "1.5")));
        check("a;b\t7", Some(("a;b", "7")));
        check("a;b", None);
    }

    #[test]
    fn marks_of_frames_are_kinds() {
        assert_eq!(frame("vfs_read_[k]"), ("vfs_read", "os_kernel"));
        assert_eq!(frame("f_[0]"), ("f_[0]", "frame"));
        assert_eq!(frame("main"), ("main", "frame"));
    }

    #[test]
    fn only_stacks_are_recognised() {
        let check = |text: &str, expected: bool| {
            assert_eq!(Folded.recognise(&Source::of_bytes(text.as_bytes()).unwrap()), expected, "{text}");
        };
        check("a;b;c 42\n", true);
        check("\r\na;b;c 42\r\nmain 3\r\n[unknown];f(int, int) 1.5\r\n", true);
        check("main 3\n", false);
        check("a;b;c\n", false);
        check("a;b 42\nsomething else\n", false);
        check("a;b 42\nsomething else\na;c 1\nd 3\n", true);
        check("something;else\na;b 42\na;c 1\nd 3\n", false);
        check("start;finish;name\n0;5;job 1\n", false);
        check("0;5;job 1\n5;9;job 2\n", false);
        check("a;b -1\n", false);
        check("a;b\0 1\n", false);
        let deep = "frame;".repeat(20_000);
        check(&format!("{deep}last 42\nmain 3\n"), true);
        check(&format!("{deep}last\nmain 3\n"), false);
        check(&format!("{deep}last 42\n").repeat(12).replace('\n', ";"), false);
        check("let x = 1; 2\nfor (;;) y 3\n}\n", false);
    }
}
