//! JSON as the library itself writes it: a rigid layout, scanned byte for byte, in blocks on several threads.
//!
//! ```text
//! 3.x, 4.0   [\n{"executor":"0","data":[{"worker":3,"level":0,"data":[…]},…]}\n,{}\n]\n
//! 2.6, 2.7   {"executor":"<uuid>","data":[{"worker":3,"level":0,"data":[…]}]}\n
//! 2.5        {"executor":"<uuid>","data":[{"worker":"worker 3","data":[…]}]}\n
//! a task     {"span":[293,346],"name":"B_0_0","type":"static"}
//! ```
//! The library escapes nothing: a name may hold quotes, line ends, bytes that are no UTF-8, or text that looks like the
//! layout. It runs to the first `","type":"` that a type word and `"}` follow, and its bytes are taken as they are. A name
//! with parts of the layout in it may be one whose own type word is damaged: it is reported ([`read`]).
//!
//! Life of the data: blocks end after a task, so a block may begin in the middle of a lane, without the header that names
//! its worker. [`Chunk::scan`] (any thread) makes rows with names numbered in a dictionary of the block;
//! [`Assembler::take`] (one thread, file order) tracks the lane, renumbers the names and passes the rows on.
//!
//! An unnamed task is written as `<worker>_<index in its lane>`. A block that begins inside a lane knows neither, so a name
//! of that shape is kept as a mark in [`Guesses`] (the worker, and the index with which the block would then begin) instead
//! of as text: five million distinct texts would fill a dictionary only to be discarded. The assembler turns right marks
//! into '' and wrong ones back into text.

use memchr::memmem;

use super::lanes::{Executor, Lane, PIECE_TASKS, Rows, Stop, Trace, note_not_utf8};
use super::types;
use crate::error::ImportError;
use crate::trace::{Block, Ending, Finding, Source, Stats, Words, findings, parse_blocks};

const NS_PER_US: i64 = 1_000;

/// What follows a name when it ends.
const AFTER_NAME: &[u8; 10] = b"\",\"type\":\"";
const BEFORE_NAME: &[u8; 8] = b"\"name\":\"";

/// Pieces of a task: a name that ran on over a damaged type has at least one of them in it.
const IN_TASKS: [&[u8]; 3] = [b"{\"span\":[", b"],\"name\":\"", AFTER_NAME];
/// How a lane begins.
const LANE: &[u8; 10] = b"{\"worker\":";

/// Different marks that a lane may use before names of that shape are taken as text.
const GUESSES_MAX: usize = 16;

/// Whether `head` begins as the library writes it.
pub(super) fn is_rigid(head: &[u8]) -> bool {
    let item = head.strip_prefix(b"[\n").unwrap_or(head);
    let Some(rest) = item.strip_prefix(b"{\"executor\":\"") else {
        // Executors without tasks come first where they were made first.
        return item.len() < head.len() && item.starts_with(b"{}\n");
    };
    let Some(id_end) = memchr::memchr(b'"', rest) else { return false };
    let Some(data) = rest[id_end..].strip_prefix(b"\",\"data\":[") else { return false };
    let worker = data.strip_prefix(b"{\"worker\":").and_then(<[u8]>::first);
    data.is_empty() || data[0] == b']' || worker.is_some_and(|first| *first == b'"' || first.is_ascii_digit())
}

/// Reads everything into `trace`, and tells whether no name looks as if it had swallowed a task.
///
/// # Errors
/// [`Stop::Cut`] when the text ends too early, [`ImportError::Damaged`] where it leaves the layout.
pub(super) fn read(source: &Source, threads: usize, trace: &mut Trace, stats: &mut Stats) -> Result<bool, Stop> {
    let array = source.head().starts_with(b"[");
    let mut assembler = Assembler::new(trace, stats);
    let ending =
        parse_blocks(source, threads, last_border, |block| Chunk::scan(block, array), |chunk| assembler.take(chunk))?;
    let (at, is_plain) = (assembler.end, assembler.swallowed == 0);
    match assembler.into_stop() {
        Some(stop) => Err(stop),
        None if ending == Ending::CutOff => Err(Stop::Cut { at, inside: "the compressed stream".to_owned() }),
        None => Ok(is_plain),
    }
}

/// The length of the text up to the end of its last whole task.
///
/// A task ends where `","type":"`, a type word and `"}` stand in a row: inside a name they would end the name. Only when
/// the quote of `","type":"` opens a name (which then begins with a comma) do they mean something else.
fn last_border(text: &[u8]) -> Option<usize> {
    memmem::rfind_iter(text, AFTER_NAME).find_map(|at| {
        let word_at = at + AFTER_NAME.len();
        let opens_a_name = text[..at + 1].ends_with(BEFORE_NAME);
        type_word(&text[word_at..]).filter(|_| !opens_a_name).map(|(_, length)| word_at + length + 2)
    })
}

/// The code and length of the type word that `"}` follows.
#[inline]
fn type_word(text: &[u8]) -> Option<(i32, usize)> {
    if text.starts_with(b"static\"}") {
        return Some((1, 6));
    }
    let text = &text[..text.len().min(types::WORD_MAX + 2)];
    let length = text.iter().position(|&byte| byte == b'"')?;
    let code = types::code(&text[..length])?;
    (text.get(length + 1) == Some(&b'}')).then_some((code, length))
}

/// What a block holds, in its order.
pub(super) enum Part {
    /// An executor begins, with its id; `{}` has none.
    Executor(Option<String>),
    /// A lane begins.
    Lane { worker: u32, level: u32 },
    /// Tasks of the lane that began last, perhaps in an earlier block. Names below 0 are marks.
    Tasks(Rows, Guesses),
}

/// The text leaves the layout, or ends.
pub(super) struct Surprise {
    /// Byte in the source.
    pub(super) at: u64,
    /// What should be there.
    pub(super) expected: String,
    /// Whether the text ended there.
    pub(super) ended: bool,
}

/// Names that have something of the layout in them.
#[derive(Default)]
struct Swallowed {
    count: u64,
    /// Byte in the source of the first.
    at: Option<u64>,
}

impl Swallowed {
    fn add(&mut self, at: u64) {
        self.count += 1;
        self.at.get_or_insert(at);
    }

    fn note(&self, finding: Finding, stats: &mut Stats, what: &str) {
        stats.note(finding, self.count, || format!("byte {}: {what}", self.at.unwrap_or_default()));
    }
}

/// A scanned block.
pub(super) struct Chunk {
    pub(super) parts: Vec<Part>,
    /// The names of this block.
    pub(super) names: Words,
    /// How many names are no UTF-8, and the first of them with its place.
    pub(super) not_utf8: u64,
    pub(super) not_utf8_example: Option<(u64, String)>,
    /// Names with a task in them.
    tasks_in_names: Swallowed,
    /// Names with the beginning of a lane in them.
    workers_in_names: Swallowed,
    pub(super) surprise: Option<Surprise>,
    /// Where the block ends in the source.
    pub(super) end: u64,
}

impl Chunk {
    pub(super) fn empty() -> Chunk {
        Chunk {
            parts: Vec::new(),
            names: Words::default(),
            not_utf8: 0,
            not_utf8_example: None,
            tasks_in_names: Swallowed::default(),
            workers_in_names: Swallowed::default(),
            surprise: None,
            end: 0,
        }
    }

    fn scan(block: Block<'_>, array: bool) -> Chunk {
        let mut scanner = Scanner { text: block.bytes, at: 0, block, array, chunk: Chunk::empty() };
        // Every block but the first begins behind a task.
        let begin = if block.offset == 0 { State::Open } else { State::AfterTask };
        if let Err((at, expected)) = scanner.run(begin) {
            let ended = block.last && ends_like(&block.bytes[at..], expected);
            let expected = String::from_utf8_lossy(expected).trim_end().to_owned();
            scanner.chunk.surprise = Some(Surprise { at: block.offset + at as u64, expected, ended });
        }
        scanner.chunk.end = block.offset + block.bytes.len() as u64;
        scanner.chunk
    }

    /// Counts a name that has something of the layout in it.
    fn look_into(&mut self, name: &[u8], at: u64) {
        let holds = |piece: &[u8]| memmem::find(name, piece).is_some();
        if holds(LANE) {
            self.workers_in_names.add(at);
        }
        if holds(LANE) || IN_TASKS.iter().any(|piece| holds(piece)) {
            self.tasks_in_names.add(at);
        }
    }
}

/// Whether the text ends where `expected` had begun.
fn ends_like(rest: &[u8], expected: &[u8]) -> bool {
    rest.is_empty() || (rest.len() < expected.len() && expected.starts_with(rest))
}

/// Where the scanner stands.
#[derive(Clone, Copy)]
enum State {
    Open,
    Item,
    Lane,
    Tasks,
    AfterTask,
    AfterLane,
    AfterExecutor,
    AfterItem,
    End,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    block: Block<'a>,
    /// Whether the file is an array of executors.
    array: bool,
    chunk: Chunk,
}

/// Where the text leaves the layout, and what should be there.
type Off = (usize, &'static [u8]);

/// What is expected in place of a number or a task's type, for messages.
const A_NUMBER: &[u8] = b"0";

impl Scanner<'_> {
    fn run(&mut self, mut state: State) -> Result<(), Off> {
        // The lane that is open when the block begins is not known here.
        let mut guesses = Some(Guesses::open());
        loop {
            state = match state {
                State::Open => {
                    if self.array {
                        self.expect(b"[")?;
                        self.skip_if(b'\n');
                    }
                    State::Item
                }
                State::Item if self.rest().starts_with(b"{}") => {
                    self.at += 2;
                    self.chunk.parts.push(Part::Executor(None));
                    State::AfterItem
                }
                State::Item => {
                    self.expect(b"{\"executor\":\"")?;
                    let id = self.rest();
                    let length = memchr::memchr(b'"', id).ok_or((self.text.len(), &b"\""[..]))?;
                    let id = String::from_utf8_lossy(&id[..length]).into_owned();
                    self.at += length;
                    self.expect(b"\",\"data\":[")?;
                    self.chunk.parts.push(Part::Executor(Some(id)));
                    if self.rest().starts_with(b"]") { State::AfterExecutor } else { State::Lane }
                }
                State::Lane => {
                    let (worker, level) = self.lane()?;
                    self.chunk.parts.push(Part::Lane { worker, level });
                    guesses = Some(Guesses::known(u64::from(worker)));
                    if self.rest().starts_with(b"]") { State::AfterLane } else { State::Tasks }
                }
                State::Tasks => {
                    let guesses = guesses.take().unwrap_or_else(Guesses::open);
                    self.tasks(guesses)?
                }
                State::AfterTask => match self.rest().first() {
                    None if !self.block.last => return Ok(()),
                    Some(b',') => {
                        self.at += 1;
                        State::Tasks
                    }
                    _ => State::AfterLane,
                },
                State::AfterLane => {
                    self.expect(b"]}")?;
                    if self.skip_if(b',') { State::Lane } else { State::AfterExecutor }
                }
                State::AfterExecutor => {
                    self.expect(b"]}")?;
                    State::AfterItem
                }
                State::AfterItem => {
                    self.skip_if(b'\n');
                    match self.rest().first() {
                        Some(b',') if self.array => {
                            self.at += 1;
                            self.skip_if(b'\n');
                            State::Item
                        }
                        _ if self.array => {
                            self.expect(b"]")?;
                            State::End
                        }
                        _ => State::End,
                    }
                }
                State::End => {
                    let end = self.rest().trim_ascii();
                    // The quoted text is what a reader should see missing: nothing.
                    return if end.is_empty() { Ok(()) } else { Err((self.text.len() - end.len(), b"the end")) };
                }
            };
        }
    }

    /// Tasks until something else than a comma follows one.
    fn tasks(&mut self, mut guesses: Guesses) -> Result<State, Off> {
        // A task has some 60 bytes; a lane that ends soon gives back what it did not use.
        let mut rows = Rows::with_capacity((self.rest().len() / 56).clamp(4, PIECE_TASKS + PIECE_TASKS / 4));
        let ended = loop {
            if let Err(off) = self.task(&mut rows, &mut guesses) {
                break Err(off);
            }
            if !self.rest().starts_with(b",") {
                break Ok(State::AfterTask);
            }
            self.at += 1;
        };
        if rows.len() * 2 < rows.starts.capacity() {
            rows.starts.shrink_to_fit();
            rows.finishes.shrink_to_fit();
        }
        if rows.len() > 0 {
            self.chunk.parts.push(Part::Tasks(rows, guesses));
        }
        ended
    }

    #[inline]
    fn task(&mut self, rows: &mut Rows, guesses: &mut Guesses) -> Result<(), Off> {
        self.expect(b"{\"span\":[")?;
        let begin = self.microseconds()?;
        self.expect(b",")?;
        let end = self.microseconds()?;
        self.expect(b"],\"name\":\"")?;
        let name_at = self.at;
        let mut quote = name_at;
        let mut has_quotes = false;
        let (code, length) = loop {
            quote += self.text[quote..].iter().position(|&byte| byte == b'"').ok_or((self.text.len(), &b"\""[..]))?;
            if self.text[quote..].starts_with(AFTER_NAME)
                && let Some(word) = type_word(&self.text[quote + AFTER_NAME.len()..])
            {
                break word;
            }
            quote += 1;
            has_quotes = true;
        };
        self.at = quote + AFTER_NAME.len() + length + 2;
        let name = &self.text[name_at..quote];
        if has_quotes {
            self.chunk.look_into(name, self.block.offset + name_at as u64);
        }
        let key = match guesses.mark(name, rows.len()) {
            Some(mark) => mark,
            None => self.name(name, name_at),
        };
        rows.push(begin, end, key, code);
        Ok(())
    }

    fn name(&mut self, name: &[u8], at: usize) -> i32 {
        match std::str::from_utf8(name) {
            Ok(name) => self.chunk.names.intern(name),
            Err(_) => {
                let name = String::from_utf8_lossy(name);
                let key = self.chunk.names.intern(&name);
                self.chunk.not_utf8 += 1;
                let place = self.block.offset + at as u64;
                self.chunk.not_utf8_example.get_or_insert_with(|| (place, name.into_owned()));
                key
            }
        }
    }

    fn lane(&mut self) -> Result<(u32, u32), Off> {
        self.expect(b"{\"worker\":")?;
        if self.skip_if(b'"') {
            // 2.5 has no levels.
            self.expect(b"worker ")?;
            let worker = self.count()?;
            self.expect(b"\",\"data\":[")?;
            return Ok((worker, 0));
        }
        let worker = self.count()?;
        self.expect(b",\"level\":")?;
        let level = self.count()?;
        self.expect(b",\"data\":[")?;
        Ok((worker, level))
    }

    fn count(&mut self) -> Result<u32, Off> {
        let at = self.at;
        let number = self.integer()?;
        u32::try_from(number).map_err(|_| (at, A_NUMBER))
    }

    /// A whole number of microseconds, in ns.
    #[inline]
    fn microseconds(&mut self) -> Result<i64, Off> {
        let at = self.at;
        self.integer()?.checked_mul(NS_PER_US).ok_or((at, A_NUMBER))
    }

    #[inline]
    fn integer(&mut self) -> Result<i64, Off> {
        let negative = self.skip_if(b'-');
        let begin = self.at;
        let mut value = 0i64;
        while let Some(digit) = self.text.get(self.at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            // Eighteen digits always fit.
            if self.at - begin >= 18 {
                return Err((begin, A_NUMBER));
            }
            value = value * 10 + i64::from(digit);
            self.at += 1;
        }
        if self.at == begin {
            return Err((begin, A_NUMBER));
        }
        Ok(if negative { -value } else { value })
    }

    #[inline]
    fn expect<const N: usize>(&mut self, literal: &'static [u8; N]) -> Result<(), Off> {
        if self.text.get(self.at..self.at + N).is_some_and(|text| text == literal) {
            self.at += N;
            Ok(())
        } else {
            Err((self.at, literal))
        }
    }

    #[inline]
    fn skip_if(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }
}

/// Marks for names of the shape `<worker>_<index>`, which unnamed tasks get.
///
/// Mark `-1 - n` says: this is an unnamed task if the lane is `list[n].worker` and the rows begin with its task number
/// `list[n].base`.
pub(super) struct Guesses {
    list: Vec<Guess>,
    /// The one that was right last.
    current: usize,
    /// Whether worker and base are only guessed.
    open: bool,
    /// Whether names of that shape were taken as text because the list was full.
    overflowed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Guess {
    worker: u64,
    base: i64,
}

impl Guesses {
    /// For rows of a lane that is not in sight.
    pub(super) fn open() -> Guesses {
        Guesses { list: Vec::new(), current: 0, open: true, overflowed: false }
    }

    /// For all rows of a lane of that worker.
    fn known(worker: u64) -> Guesses {
        Guesses { list: vec![Guess { worker, base: 0 }], current: 0, open: false, overflowed: false }
    }

    /// The mark for a name in row number `row`, if it has the shape.
    #[inline]
    pub(super) fn mark(&mut self, name: &[u8], row: usize) -> Option<i32> {
        let (worker, index) = worker_and_index(name)?;
        let guess = Guess { worker, base: index as i64 - row as i64 };
        if self.list.get(self.current) != Some(&guess) {
            if !self.open {
                return None;
            }
            self.current = match self.list.iter().position(|known| *known == guess) {
                Some(known) => known,
                None if self.list.len() < GUESSES_MAX => {
                    self.list.push(guess);
                    self.list.len() - 1
                }
                None => {
                    self.overflowed = true;
                    return None;
                }
            };
        }
        Some(-1 - self.current as i32)
    }
}

/// Reads `<worker>_<index>`, both as the library writes numbers.
#[inline]
fn worker_and_index(name: &[u8]) -> Option<(u64, u64)> {
    if !name.first()?.is_ascii_digit() {
        return None;
    }
    let underscore = name.iter().position(|&byte| byte == b'_')?;
    Some((plain_number(&name[..underscore])?, plain_number(&name[underscore + 1..])?))
}

#[inline]
fn plain_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0')))
}

/// Puts the blocks together again.
pub(super) struct Assembler<'r> {
    trace: &'r mut Trace,
    stats: &'r mut Stats,
    lane: Option<Lane>,
    /// Tasks of the lane so far.
    rows: u64,
    stop: Option<Stop>,
    /// Bytes so far.
    end: u64,
    /// Names with a task in them.
    swallowed: u64,
}

impl<'r> Assembler<'r> {
    pub(super) fn new(trace: &'r mut Trace, stats: &'r mut Stats) -> Assembler<'r> {
        Assembler { trace, stats, lane: None, rows: 0, stop: None, end: 0, swallowed: 0 }
    }

    /// Where the text ended too early, if it did.
    pub(super) fn into_stop(self) -> Option<Stop> {
        self.stop
    }

    pub(super) fn take(&mut self, chunk: Chunk) -> Result<(), ImportError> {
        self.end = chunk.end;
        let mut names = Names { block: &chunk.names, keys: Vec::new() };
        for part in chunk.parts {
            match part {
                Part::Executor(uid) => {
                    self.trace.executors.push(Executor { uid, ..Executor::default() });
                    self.lane = None;
                }
                Part::Lane { worker, level } => self.begin_lane(worker, level)?,
                Part::Tasks(mut rows, guesses) => {
                    let Some(lane) = self.lane else {
                        return Err(self.trace.damaged(0, "tasks outside of any worker"));
                    };
                    names.resolve(&mut rows, &guesses, u64::from(lane.worker), self.rows, &mut self.trace.names);
                    self.rows += rows.len() as u64;
                    self.trace.add(lane, rows)?;
                }
            }
        }
        self.swallowed += chunk.tasks_in_names.count;
        let what = "another task begins inside of a name, which is odd, or its type is damaged";
        chunk.tasks_in_names.note(findings::TASK_IN_NAME, self.stats, what);
        let what = "a worker begins inside of a name, so that the tasks behind it may stand under another one";
        chunk.workers_in_names.note(findings::WORKER_IN_NAME, self.stats, what);
        if let Some((at, example)) = &chunk.not_utf8_example {
            note_not_utf8(self.stats, chunk.not_utf8, *at, example);
        }
        match chunk.surprise {
            None => Ok(()),
            Some(Surprise { at, ended: true, .. }) => {
                let inside = self.lane.map_or_else(
                    || "the list of executors".to_owned(),
                    |lane| format!("executor {}, worker {}, level {}", lane.executor, lane.worker, lane.level),
                );
                self.stop = Some(Stop::Cut { at, inside });
                Ok(())
            }
            Some(Surprise { at, expected, .. }) => {
                Err(self.trace.damaged(at, format!("`{expected}` should stand here")))
            }
        }
    }

    fn begin_lane(&mut self, worker: u32, level: u32) -> Result<(), ImportError> {
        let number = self.trace.executor();
        self.trace.mention(worker)?;
        self.lane = Some(Lane { executor: number, worker, level });
        self.rows = 0;
        Ok(())
    }
}

/// Renumbers the names of a block in the dictionary of the trace.
struct Names<'c> {
    block: &'c Words,
    /// Keys of the trace by key of the block, -1 until asked for.
    keys: Vec<i32>,
}

impl Names<'_> {
    /// `worker` and `base` are what the marks guess.
    fn resolve(&mut self, rows: &mut Rows, guesses: &Guesses, worker: u64, base: u64, names: &mut Words) {
        self.keys.resize(self.block.len(), -1);
        let truth = Guess { worker, base: base as i64 };
        let verdicts: Vec<Option<Guess>> =
            guesses.list.iter().map(|guess| (*guess != truth).then_some(*guess)).collect();
        let count = rows.len();
        if count == 0 {
            return;
        }
        if verdicts.iter().any(Option::is_some) || guesses.overflowed {
            // Wrong marks become texts that differ from row to row, and texts may turn out to be no names.
            rows.names.spread(count);
        }
        let mut unnamed = None;
        rows.names.map(|row, key| {
            let wrong = match usize::try_from(-1 - i64::from(key)) {
                Ok(mark) => verdicts[mark],
                Err(_) if guesses.overflowed && self.is_unnamed(key, worker, base + row as u64) => None,
                Err(_) => {
                    let slot = &mut self.keys[key as usize];
                    if *slot < 0 {
                        *slot = names.intern(self.block.word(key));
                    }
                    return *slot;
                }
            };
            match wrong {
                Some(guess) => names.intern(&format!("{}_{}", guess.worker, guess.base + row as i64)),
                None => *unnamed.get_or_insert_with(|| names.intern("")),
            }
        });
    }

    fn is_unnamed(&self, key: i32, worker: u64, index: u64) -> bool {
        worker_and_index(self.block.word(key).as_bytes()) == Some((worker, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_stand_behind_tasks_and_nowhere_else() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(last_border(text.as_bytes()).map(|at| &text[at..]), expected, "{text}");
        };
        check(r#"{"span":[1,2],"name":"a","type":"static"},{"span":[3"#, Some(r#",{"span":[3"#));
        check(r#"{"span":[1,2],"name":"","type":"condition"}]},{"wor"#, Some(r#"]},{"wor"#));
        // The type is not whole.
        check(r#"{"span":[1,2],"name":"a","type":"static""#, None);
        check(r#"{"span":[1,2],"name":"a","type":"odd"}"#, None);
        // A name that begins with a comma and goes on like the layout.
        check(r#"{"span":[1,2],"name":","type":"static"},{"span":[0,1"#, None);
    }

    #[test]
    fn marks_tell_unnamed_tasks() {
        let mut known = Guesses::known(3);
        assert_eq!(known.mark(b"3_0", 0), Some(-1));
        assert_eq!(known.mark(b"3_1", 1), Some(-1));
        assert_eq!(known.mark(b"3_1", 2), None);
        assert_eq!(known.mark(b"4_3", 3), None);
        assert_eq!(known.mark(b"3_04", 4), None);
        let mut open = Guesses::open();
        assert_eq!(open.mark(b"3_17", 0), Some(-1));
        assert_eq!(open.mark(b"3_18", 1), Some(-1));
        assert_eq!(open.mark(b"5_5", 2), Some(-2));
        assert_eq!(open.mark(b"3_20", 3), Some(-1));
        assert_eq!(open.mark(b"name", 4), None);
    }

    /// Rows of a block that begins at task 17 of worker 3, resolved under different truths.
    #[test]
    fn wrong_marks_become_text_again() {
        let check = |worker: u64, base: u64, expected: [&str; 4]| {
            let mut guesses = Guesses::open();
            let mut block = Words::default();
            let mut rows = Rows::default();
            for (row, name) in ["3_17", "a", "3_19", "7_1"].into_iter().enumerate() {
                let key = guesses.mark(name.as_bytes(), row).unwrap_or_else(|| block.intern(name));
                rows.push(0, 0, key, 1);
            }
            let mut names = Words::default();
            Names { block: &block, keys: Vec::new() }.resolve(&mut rows, &guesses, worker, base, &mut names);
            let read: Vec<&str> = (0..4).map(|row| names.word(rows.names.get(row))).collect();
            assert_eq!(read, expected);
        };
        check(3, 17, ["", "a", "", "7_1"]);
        check(3, 0, ["3_17", "a", "3_19", "7_1"]);
        check(9, 17, ["3_17", "a", "3_19", "7_1"]);
    }

    #[test]
    fn more_shapes_than_marks_are_still_told_apart() {
        let mut guesses = Guesses::open();
        let mut block = Words::default();
        let mut rows = Rows::default();
        let texts: Vec<String> =
            (0..40).map(|row| format!("{}_{}", row % 20, 7 * row)).chain(["2_140".to_owned()]).collect();
        for (row, name) in texts.iter().enumerate() {
            let key = guesses.mark(name.as_bytes(), row).unwrap_or_else(|| block.intern(name));
            rows.push(0, 0, key, 1);
        }
        assert!(guesses.overflowed);
        let mut names = Words::default();
        Names { block: &block, keys: Vec::new() }.resolve(&mut rows, &guesses, 2, 100, &mut names);
        for (row, text) in texts.iter().enumerate() {
            let expected = if row == 40 { "" } else { text.as_str() };
            assert_eq!(names.word(rows.names.get(row)), expected);
        }
    }
}
