//! One event: the members of an object of `traceEvents`, as slices of the text.
//!
//! ```text
//! {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1234.567,"dur":8.9,"args":{"correlation":42,"stream":7}}
//! ```
//! Keys come in any order, `ts` may be last and `args` first, so nothing is decided before the closing bracket. `args` is
//! scanned once: on the way to its end, the few numbers that links need are picked up.

use std::borrow::Cow;

use super::lex::{self, Flaw};
use super::repair;

/// A string of the event, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'t> {
    /// As it stands in the text.
    pub(super) raw: &'t str,
    /// Whether that is its meaning.
    pub(super) plain: bool,
}

/// Arguments as valid JSON.
#[derive(Debug, Clone, Default)]
pub(super) enum Args<'t> {
    #[default]
    None,
    /// Valid as it stands.
    Slice(&'t str),
    /// Written anew.
    Repaired(String),
}

impl Args<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Args::None => None,
            Args::Slice(text) => Some(text),
            Args::Repaired(text) => Some(text),
        }
    }
}

/// What links are made of; absent and unusable numbers are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) correlation: Option<i64>,
    pub(super) external: Option<i64>,
    pub(super) python: Option<i64>,
    pub(super) python_parent: Option<i64>,
}

/// An event. Tokens (`pid`, `id` …) are JSON as it stands in the text, quotes included; empty = absent.
#[derive(Debug, Clone, Default)]
pub(super) struct Event<'t> {
    /// First character of `ph`; 0 = there is none.
    pub(super) phase: u8,
    pub(super) name: Option<Text<'t>>,
    pub(super) category: Option<Text<'t>>,
    /// Times without quotes.
    pub(super) ts: &'t str,
    pub(super) dur: &'t str,
    pub(super) pid: &'t str,
    pub(super) tid: &'t str,
    pub(super) id: &'t str,
    /// An object, unchecked.
    pub(super) id2: &'t str,
    pub(super) scope: &'t str,
    pub(super) instant_scope: &'t str,
    pub(super) tts: &'t str,
    pub(super) tdur: &'t str,
    pub(super) binding_point: &'t str,
    pub(super) bind_id: &'t str,
    pub(super) flow_in: &'t str,
    pub(super) flow_out: &'t str,
    pub(super) args: Args<'t>,
    /// The arguments without the blanks between their tokens, where they were seen to stand on several lines; else ''.
    compact: String,
    pub(super) facts: Facts,
    /// Keys that the format does not know, as they stand in valid JSON, with their valid values: they join the arguments.
    pub(super) others: Vec<(Cow<'t, str>, String)>,
    /// The member `tq`, where the file says that it wrote it.
    pub(super) told: Option<String>,
    /// Whether a key came twice; the last one counts.
    pub(super) duplicate: bool,
    /// A key whose value is an array or an object where a text or a number should be. It joined the arguments.
    pub(super) misfit: Option<&'t str>,
}

impl Event<'_> {
    /// The arguments as they are kept; '' for none.
    pub(super) fn kept_args(&self) -> &str {
        match self.compact.as_str() {
            "" => self.args.text().unwrap_or_default(),
            compact => compact,
        }
    }
}

/// Reads the object whose opening bracket is at `at` into `event`; the answer is the place behind its closing bracket.
#[inline]
pub(super) fn read<'t>(text: &'t str, at: usize, stack: &mut Vec<u8>, event: &mut Event<'t>) -> Result<usize, Flaw> {
    let mut compact = std::mem::take(&mut event.compact);
    compact.clear();
    *event = Event { compact, ..Event::default() };
    let bytes = text.as_bytes();
    let mut seen = 0u32;
    let mut at = at + 1;
    loop {
        at = lex::space(bytes, at);
        if bytes.get(at) != Some(&b'"') {
            match bytes.get(at) {
                // Trailing and doubled commas do no harm.
                Some(b',') => {
                    at += 1;
                    continue;
                }
                Some(b'}') => return Ok(at + 1),
                Some(_) => return Err(Flaw::At(at)),
                None => return Err(Flaw::Ended),
            }
        }
        let key = lex::string(bytes, at + 1)?;
        let name_at = at + 1;
        let unescaped;
        let name = if key.plain {
            &bytes[name_at..key.end]
        } else {
            // No producer that is known writes keys with escapes, but JSON may.
            unescaped = repair::unescape(slice(text, name_at, key.end)?).0;
            unescaped.as_bytes()
        };
        at = colon(bytes, key.end + 1)?;
        if matches!(bytes.get(at), Some(b'{' | b'[')) && is_plain(name) {
            at = misfit(text, (name_at, key.end), at, event)?;
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b'}') => return Ok(at + 1),
                Some(_) => return Err(Flaw::At(at)),
                None => return Err(Flaw::Ended),
            }
            continue;
        }
        let (number, end) = match short_key(name) {
            key::PH => {
                let (phase, end) = token(text, at)?;
                event.phase = match phase.as_bytes() {
                    [b'"', letter, b'"'] => *letter,
                    b"null" | b"true" | b"false" => 0,
                    _ => phase.trim_matches('"').bytes().next().unwrap_or(0),
                };
                if event.phase == b'\\' {
                    event.phase = unescaped_phase(phase);
                }
                (0, end)
            }
            key::NAME => member(1, quoted(text, at)?, &mut event.name),
            key::CAT => member(2, quoted(text, at)?, &mut event.category),
            key::TS => member(3, time(text, at)?, &mut event.ts),
            key::DUR => member(4, time(text, at)?, &mut event.dur),
            key::PID => member(5, token(text, at)?, &mut event.pid),
            key::TID => member(6, token(text, at)?, &mut event.tid),
            key::ARGS => (7, arguments(text, at, stack, event)?),
            key::ID => member(8, token(text, at)?, &mut event.id),
            key::TTS => member(9, token(text, at)?, &mut event.tts),
            key::TDUR => member(10, token(text, at)?, &mut event.tdur),
            key::S => member(11, token(text, at)?, &mut event.instant_scope),
            key::BP => member(12, token(text, at)?, &mut event.binding_point),
            key::ID2 => member(13, anything(text, at, stack)?, &mut event.id2),
            _ => match name {
                b"scope" => member(14, token(text, at)?, &mut event.scope),
                b"bind_id" => member(15, token(text, at)?, &mut event.bind_id),
                b"flow_in" => member(16, token(text, at)?, &mut event.flow_in),
                b"flow_out" => member(17, token(text, at)?, &mut event.flow_out),
                _ => {
                    let mut value = String::new();
                    let end = repair::value(text, at, &mut value)?;
                    let raw = slice(text, name_at, key.end)?;
                    let key = if key.plain { Cow::Borrowed(raw) } else { Cow::Owned(valid_key(raw)) };
                    event.others.push((key, value));
                    (31, end)
                }
            },
        };
        event.duplicate |= number < 31 && seen & (1 << number) != 0;
        seen |= 1 << number;
        at = lex::space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at += 1;
            continue;
        }
        match bytes.get(at) {
            Some(b'}') => return Ok(at + 1),
            Some(_) => return Err(Flaw::At(at)),
            None => return Err(Flaw::Ended),
        }
    }
}

/// Whether the value of a key is a text or a number.
fn is_plain(name: &[u8]) -> bool {
    let long: [&[u8]; 4] = [b"scope", b"bind_id", b"flow_in", b"flow_out"];
    let short = [
        key::PH,
        key::NAME,
        key::CAT,
        key::TS,
        key::DUR,
        key::PID,
        key::TID,
        key::ID,
        key::TTS,
        key::TDUR,
        key::S,
        key::BP,
    ];
    short.contains(&short_key(name)) || long.contains(&name)
}

/// Takes an array or an object that stands where a text or a number should be; the answer is the place behind it. An event
/// without times is none; whatever else it is, it joins the arguments.
#[cold]
fn misfit<'t>(text: &'t str, (from, to): (usize, usize), at: usize, event: &mut Event<'t>) -> Result<usize, Flaw> {
    let mut value = String::new();
    let end = repair::value(text, at, &mut value)?;
    let key = slice(text, from, to)?;
    match key {
        "ts" => event.ts = slice(text, at, end)?,
        "dur" => event.dur = slice(text, at, end)?,
        _ => {
            event.misfit.get_or_insert(key);
            event.others.push((Cow::Borrowed(key), value));
        }
    }
    Ok(lex::space(text.as_bytes(), end))
}

#[cold]
fn unescaped_phase(token: &str) -> u8 {
    string_value(token).and_then(|phase| phase.bytes().next()).unwrap_or(0)
}

/// A key without its quotes as valid JSON.
fn valid_key(raw: &str) -> String {
    let mut quoted = String::new();
    repair::quote(&repair::unescape(raw).0, &mut quoted);
    quoted[1..quoted.len() - 1].to_owned()
}

/// The keys of nearly all members, as numbers: comparing those is one instruction.
mod key {
    pub(super) const PH: u32 = super::short_key(b"ph");
    pub(super) const NAME: u32 = super::short_key(b"name");
    pub(super) const CAT: u32 = super::short_key(b"cat");
    pub(super) const TS: u32 = super::short_key(b"ts");
    pub(super) const DUR: u32 = super::short_key(b"dur");
    pub(super) const PID: u32 = super::short_key(b"pid");
    pub(super) const TID: u32 = super::short_key(b"tid");
    pub(super) const ARGS: u32 = super::short_key(b"args");
    pub(super) const ID: u32 = super::short_key(b"id");
    pub(super) const TTS: u32 = super::short_key(b"tts");
    pub(super) const TDUR: u32 = super::short_key(b"tdur");
    pub(super) const S: u32 = super::short_key(b"s");
    pub(super) const BP: u32 = super::short_key(b"bp");
    pub(super) const ID2: u32 = super::short_key(b"id2");
}

/// Up to four bytes as a number; 0 for anything longer.
#[inline(always)]
const fn short_key(key: &[u8]) -> u32 {
    match *key {
        [a] => u32::from_le_bytes([a, 0, 0, 0]),
        [a, b] => u32::from_le_bytes([a, b, 0, 0]),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// The place of the value behind a key.
#[inline(always)]
fn colon(bytes: &[u8], at: usize) -> Result<usize, Flaw> {
    let at = lex::space(bytes, at);
    match bytes.get(at) {
        Some(b':') => Ok(lex::space(bytes, at + 1)),
        Some(_) => Err(Flaw::At(at)),
        None => Err(Flaw::Ended),
    }
}

#[inline(always)]
fn member<T>(number: u32, (value, end): (T, usize), place: &mut T) -> (u32, usize) {
    *place = value;
    (number, end)
}

#[inline(always)]
fn slice(text: &str, from: usize, to: usize) -> Result<&str, Flaw> {
    text.get(from..to).ok_or(Flaw::At(from))
}

/// A string, or whatever else stands where one should: a name may be a number.
#[inline]
fn quoted(text: &str, at: usize) -> Result<(Option<Text<'_>>, usize), Flaw> {
    if text.as_bytes().get(at) == Some(&b'"') {
        let string = lex::string(text.as_bytes(), at + 1)?;
        let raw = slice(text, at + 1, string.end)?;
        return Ok((Some(Text { raw, plain: string.plain }), string.end + 1));
    }
    let (raw, end) = token(text, at)?;
    Ok((if raw == "null" { None } else { Some(Text { raw, plain: true }) }, end))
}

/// A number as text; a string loses its quotes.
#[inline]
fn time(text: &str, at: usize) -> Result<(&str, usize), Flaw> {
    let bytes = text.as_bytes();
    if bytes.get(at) == Some(&b'"') {
        let string = lex::string(bytes, at + 1)?;
        return Ok((slice(text, at + 1, string.end)?, string.end + 1));
    }
    // Numbers end at a comma, a bracket or a blank, most of them within a few bytes.
    let mut end = lex::digits(bytes, at);
    while bytes.get(end) == Some(&b'.') {
        end = lex::digits(bytes, end + 1);
    }
    if !matches!(bytes.get(end), Some(b',' | b'}' | b' ' | b'\n')) {
        end = repair::token_end(bytes, end);
    }
    match bytes.get(end) {
        None => Err(Flaw::Ended),
        Some(_) if end == at => Err(Flaw::At(at)),
        Some(_) => Ok((slice(text, at, end)?, end)),
    }
}

/// A string with its quotes, or a number or word.
#[inline]
fn token(text: &str, at: usize) -> Result<(&str, usize), Flaw> {
    let bytes = text.as_bytes();
    if bytes.get(at) == Some(&b'"') {
        let string = lex::string(bytes, at + 1)?;
        return Ok((slice(text, at, string.end + 1)?, string.end + 1));
    }
    time(text, at)
}

/// Any valid value.
fn anything<'t>(text: &'t str, at: usize, stack: &mut Vec<u8>) -> Result<(&'t str, usize), Flaw> {
    let end = lex::value(text.as_bytes(), at, stack)?;
    Ok((slice(text, at, end)?, end))
}

/// The arguments, valid or repaired.
#[inline]
fn arguments<'t>(text: &'t str, at: usize, stack: &mut Vec<u8>, event: &mut Event<'t>) -> Result<usize, Flaw> {
    let mut facts = Facts::default();
    match walk_arguments(text, at, stack, &mut facts, &mut event.compact) {
        Ok(end) => {
            event.args = match slice(text, at, end)? {
                "null" => Args::None,
                object if object.starts_with('{') => Args::Slice(object),
                other => Args::Repaired(as_object(other)),
            };
            event.facts = facts;
            Ok(end)
        }
        Err(Flaw::Ended) => Err(Flaw::Ended),
        Err(Flaw::At(_)) => {
            let mut repaired = String::new();
            let end = repair::value(text, at, &mut repaired)?;
            let mut facts = Facts::default();
            // Now it is valid.
            if walk_arguments(&repaired, 0, stack, &mut facts, &mut event.compact).is_ok() {
                event.facts = facts;
            }
            let is_object = repaired.starts_with('{');
            event.args = Args::Repaired(if is_object { repaired } else { as_object(&repaired) });
            Ok(end)
        }
    }
}

/// `"args": 5` is no object of arguments; it stays as one.
fn as_object(value: &str) -> String {
    format!(r#"{{"args":{value}}}"#)
}

#[inline]
fn walk_arguments(
    text: &str,
    at: usize,
    stack: &mut Vec<u8>,
    facts: &mut Facts,
    compact: &mut String,
) -> Result<usize, Flaw> {
    compact.clear();
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'{') {
        return lex::value(bytes, at, stack);
    }
    let (opening, mut at) = (at, lex::space(bytes, at + 1));
    // Whoever writes arguments on several lines breaks the first one behind the bracket.
    let is_open = bytes[opening..at].contains(&b'\n');
    let mut copied = Copied { text, from: opening, to: is_open.then_some(compact) };
    copied.leave_out(opening + 1, at);
    if bytes.get(at) == Some(&b'}') {
        copied.end(at + 1);
        return Ok(at + 1);
    }
    loop {
        match bytes.get(at) {
            Some(b'"') => {}
            Some(_) => return Err(Flaw::At(at)),
            None => return Err(Flaw::Ended),
        }
        let key_end = lex::valid_string(bytes, at + 1)?;
        let key = &bytes[at + 1..key_end - 1];
        at = colon(bytes, key_end)?;
        if at > key_end + 1 {
            let colon = lex::space(bytes, key_end);
            copied.leave_out(key_end, colon);
            copied.leave_out(colon + 1, at);
        }
        let end = lex::value(bytes, at, stack)?;
        if let b'{' | b'[' = bytes[at] {
            copied.nested(at, end);
        }
        let fact = match key {
            b"correlation" => Some(&mut facts.correlation),
            b"External id" | b"external id" => Some(&mut facts.external),
            b"Python id" => Some(&mut facts.python),
            b"Python parent id" => Some(&mut facts.python_parent),
            _ => None,
        };
        if let Some(fact) = fact {
            *fact = integer(&bytes[at..end]);
        }
        at = lex::space(bytes, end);
        copied.leave_out(end, at);
        match bytes.get(at) {
            Some(b',') => {
                let next = lex::space(bytes, at + 1);
                copied.leave_out(at + 1, next);
                at = next;
            }
            Some(b'}') => {
                copied.end(at + 1);
                return Ok(at + 1);
            }
            Some(_) => return Err(Flaw::At(at)),
            None => return Err(Flaw::Ended),
        }
    }
}

/// A copy of tokens without the blanks between them, where one is wanted.
struct Copied<'t, 'c> {
    text: &'t str,
    /// Where what is not copied yet begins.
    from: usize,
    to: Option<&'c mut String>,
}

impl Copied<'_, '_> {
    /// Leaves out the blanks between the end of a token and the next one.
    #[inline(always)]
    fn leave_out(&mut self, end: usize, next: usize) {
        if end < next {
            self.end(end);
            self.from = next;
        }
    }

    /// Copies what stands before `end`.
    #[inline(always)]
    fn end(&mut self, end: usize) {
        if let Some(to) = &mut self.to {
            to.push_str(self.text.get(self.from..end).unwrap_or_default());
            self.from = end;
        }
    }

    /// Copies a value that has blanks of its own.
    fn nested(&mut self, begin: usize, end: usize) {
        self.end(begin);
        if let Some(to) = &mut self.to {
            push_without_blanks(self.text.get(begin..end).unwrap_or_default(), to);
            self.from = end;
        }
    }
}

/// A whole number; quotes around it are ignored (the pre-2020 PyTorch writer has them).
pub(super) fn integer(token: &[u8]) -> Option<i64> {
    let digits = match token {
        [b'"', inner @ .., b'"'] => inner,
        _ => token,
    };
    // So many digits fit.
    if digits.len() <= 18 && !digits.is_empty() && lex::digits(digits, 0) == digits.len() {
        return Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')));
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The members of a valid JSON object, as raw key (without quotes) and raw value; nothing for any other value.
pub(super) fn members(text: &str) -> Vec<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut members = Vec::new();
    let mut stack = Vec::new();
    let mut at = lex::space(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return members;
    }
    at = lex::space(bytes, at + 1);
    while bytes.get(at) == Some(&b'"') {
        let Ok(key_end) = lex::valid_string(bytes, at + 1) else { return members };
        let value_at = lex::space(bytes, lex::space(bytes, key_end) + 1);
        let Ok(end) = lex::value(bytes, value_at, &mut stack) else { return members };
        if let (Some(key), Some(value)) = (text.get(at + 1..key_end - 1), text.get(value_at..end)) {
            members.push((key, value));
        }
        at = lex::space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = lex::space(bytes, at + 1);
        }
    }
    members
}

/// The value of a key in a valid JSON object.
pub(super) fn get<'t>(object: &'t str, key: &str) -> Option<&'t str> {
    members(object).into_iter().rev().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The meaning of a string token; `None` for any other token.
pub(super) fn string_value(token: &str) -> Option<String> {
    let raw = token.strip_prefix('"')?.strip_suffix('"')?;
    Some(repair::unescape(raw).0)
}

/// Valid JSON without the line ends and indentation of pretty-printers; text on one line stays as it is.
#[inline]
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    // A raw line end cannot stand in a valid string: it is a blank between tokens.
    if memchr::memchr(b'\n', json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    push_without_blanks(json, &mut out);
    Cow::Owned(out)
}

/// Appends valid JSON without the blanks between its tokens.
fn push_without_blanks(json: &str, out: &mut String) {
    let bytes = json.as_bytes();
    let mut at = lex::space(bytes, 0);
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => lex::string(bytes, at + 1).map_or(bytes.len(), |string| string.end + 1),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => at + 1,
            _ => repair::token_end(bytes, at).max(at + 1),
        };
        out.push_str(json.get(at..end).unwrap_or_default());
        at = lex::space(bytes, end);
    }
}

/// Adds members to arguments; keys are raw, values valid JSON. What is no object becomes the member `args` of one.
pub(super) fn with_members<'m>(args: Option<&str>, more: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let mut text = args.map_or("{".into(), compact).into_owned();
    if args.is_some_and(|args| !args.starts_with('{')) {
        text.insert_str(0, "{\"args\":");
    } else if text.ends_with('}') {
        text.pop();
        text.truncate(text.trim_end().len());
    }
    for (key, value) in more {
        if !text.ends_with('{') {
            text.push(',');
        }
        text.extend(["\"", key, "\":", value]);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Event<'_>, Flaw> {
        let mut event = Event::default();
        let end = super::read(text, 0, &mut Vec::new(), &mut event)?;
        assert_eq!(end, text.len());
        Ok(event)
    }

    #[test]
    fn members_come_in_any_order_and_spacing() {
        let dense = r#"{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":"s 7","ts":1234.567,"dur":"8.9","args":{"correlation":42,"External id":7}}"#;
        let loose = "{ \"args\" : { \"External id\" : 7 , \"correlation\":42 },\n\t\"dur\":\"8.9\" , \"ts\": 1234.567\n, \"tid\":\"s 7\",\
                     \"pid\":0,\"name\":\"gemm\",\"cat\":\"kernel\",\"ph\":\"Xyz\" , }";
        for text in [dense, loose] {
            let event = read(text).expect("an event");
            assert_eq!(
                (event.phase, event.ts, event.dur, event.pid, event.tid),
                (b'X', "1234.567", "8.9", "0", "\"s 7\"")
            );
            assert_eq!(event.name.map(|name| (name.raw, name.plain)), Some(("gemm", true)));
            let facts = Facts { correlation: Some(42), external: Some(7), ..Facts::default() };
            assert_eq!(event.facts, facts);
            assert!(!event.duplicate && event.others.is_empty());
        }
    }

    #[test]
    fn oddities_are_read() {
        let event =
            read(r#"{"ph":"","ts":null,"pid":1,"pid":2,"args":{"a":NaN,"correlation":3},"cname":"good","id":-1}"#)
                .expect("an event");
        assert_eq!((event.phase, event.ts, event.pid, event.duplicate), (0, "null", "2", true));
        assert_eq!(event.args.text(), Some(r#"{"a":"NaN","correlation":3}"#));
        assert_eq!((event.facts.correlation, event.id), (Some(3), "-1"));
        assert_eq!(event.others, [("cname".into(), "\"good\"".to_owned())]);
        // Beyond 64 bits: text stays, the fact is none.
        let event = read(r#"{"args":{"correlation":36893488147419103232}}"#).expect("an event");
        assert_eq!(event.facts, Facts::default());
        assert_eq!(event.args.text(), Some(r#"{"correlation":36893488147419103232}"#));
    }

    #[test]
    fn unescaped_quotes_are_faults_and_cuts_are_cuts() {
        assert!(matches!(read(r#"{"name":"x = Library("a", "b")","ph":"X"}"#), Err(Flaw::At(_))));
        let text = r#"{"ph":"X","name":"a\"b","ts":1,"args":{"k":[1,{}]}}"#;
        for length in 1..text.len() {
            assert_eq!(read(&text[..length]).err(), Some(Flaw::Ended), "{length}");
        }
    }

    #[test]
    fn pretty_printed_arguments_become_compact() {
        let check = |json: &str, expected: &str| {
            assert_eq!(compact(json), expected);
        };
        check("{ \"a\": 1 }", "{ \"a\": 1 }");
        check(
            "{\n  \"a b\": [1, 2.5e3,\r\n -1],\n\t\"c\": \"x\\\"  y\", \"d\": true\n}",
            r#"{"a b":[1,2.5e3,-1],"c":"x\"  y","d":true}"#,
        );
    }

    proptest! {
        /// Arguments that are copied while they are read are those that are copied afterwards.
        #[test]
        fn arguments_on_several_lines_are_kept_without_blanks(
            members in vec(("[a-z\"\\\\ {}:,\n]{0,9}", prop_oneof![
                any::<i32>().prop_map(serde_json::Value::from),
                "[a-zé\"\\\\ \\[\\],]{0,12}".prop_map(serde_json::Value::from),
                vec(any::<u8>(), 0..4).prop_map(serde_json::Value::from),
                Just(serde_json::json!({"a": [{"b c": null}, true]})),
            ]), 0..6),
            line in prop_oneof![Just("\n"), Just("\r\n"), Just("\n\t")],
            blank in prop_oneof![Just(""), Just(" "), Just("\t  ")],
        ) {
            let object: serde_json::Map<String, serde_json::Value> = members.into_iter().collect();
            let pretty = serde_json::to_string_pretty(&object).unwrap().replace("\n", line).replace("\": ", &format!("\"{blank}:{blank} "));
            prop_assume!(serde_json::from_str::<serde_json::Value>(&pretty).is_ok_and(|read| read.as_object() == Some(&object)));
            let text = format!("{{\"ph\":\"X\",\"args\":{pretty},\"ts\":1}}");
            let event = read(&text).expect("an event");
            prop_assert_eq!(event.kept_args(), compact(&pretty));
            let kept: serde_json::Value = serde_json::from_str(event.kept_args()).unwrap();
            prop_assert_eq!(kept.as_object(), Some(&object));
        }
    }

    #[test]
    fn whole_numbers_are_read() {
        for text in [
            "0",
            "7",
            "123456789012345678",
            "9223372036854775807",
            "-12",
            "+5",
            "007",
            "",
            "1.5",
            "9223372036854775808",
            "x1",
        ] {
            assert_eq!(integer(text.as_bytes()), text.parse().ok(), "{text}");
            assert_eq!(integer(format!("\"{text}\"").as_bytes()), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn the_arguments_that_count_are_kept() {
        let twice = "{\"args\":{\n\"a\": 1\n},\"args\":{\"b\": 2}}";
        assert_eq!(read(twice).unwrap().kept_args(), "{\"b\": 2}");
        let none = "{\"args\":{\n\"a\": 1\n},\"args\":null}";
        assert_eq!(read(none).unwrap().kept_args(), "");
        let repaired = "{\"args\":{\n\"a\": 1,\n\"b\": NaN\n}}";
        assert_eq!(read(repaired).unwrap().kept_args(), "{\"a\":1,\"b\":\"NaN\"}");
        let mut event = Event::default();
        for (text, kept) in [("{\"args\":{\n\"a\": [1, 2]\n}}", "{\"a\":[1,2]}"), ("{\"ph\":\"X\"}", "")] {
            super::read(text, 0, &mut Vec::new(), &mut event).unwrap();
            assert_eq!(event.kept_args(), kept);
        }
    }

    #[test]
    fn members_are_added() {
        let more = [("tts", "5"), ("b", "\"x\"")];
        assert_eq!(with_members(None, more), r#"{"tts":5,"b":"x"}"#);
        assert_eq!(with_members(Some("{ }"), more), r#"{"tts":5,"b":"x"}"#);
        assert_eq!(with_members(Some("{\"a\":{}\n}"), more), r#"{"a":{},"tts":5,"b":"x"}"#);
        assert_eq!(with_members(Some("[1]"), more), r#"{"args":[1],"tts":5,"b":"x"}"#);
        assert_eq!(members(r#" { "a" : [1,2] , "b":{"c":1} } "#), [("a", "[1,2]"), ("b", r#"{"c":1}"#)]);
        assert_eq!(members("[1]"), []);
    }
}
