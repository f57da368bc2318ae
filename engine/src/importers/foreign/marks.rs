//! The marks with which the beginning of a file is compared.

use crate::importers::sqlite;
use crate::trace::Source;

/// A sign by which files of one kind are known.
pub(super) enum Mark {
    /// The first bytes.
    Bytes(&'static [u8]),
    /// Bytes at a place.
    BytesAt(usize, &'static [u8]),
    /// The first line of a text begins so.
    Line(&'static str),
    /// Somewhere in the first 4 KiB of a text.
    Contains(&'static str),
    /// The name ends so, and the content is no text. For files whose content has no documented mark.
    Extension(&'static [&'static str]),
    /// A JSON object that looks so.
    Json(fn(&[String], &[u8]) -> bool),
    /// A JSON array of numbers, texts or arrays.
    ArrayWithoutObjects,
    /// An SQLite database in which some table's name begins with each of these.
    Tables(&'static [&'static str]),
    /// `BZh`, the size of a block, and the mark of one.
    Bzip2,
    /// `go 1.22 trace\0\0\0`.
    GoTrace,
    /// A buffer of OTF2: a chunk header, its byte order, and the name of one of an archive's files.
    Otf2,
    /// The headers of Tracy's compressed captures.
    Tracy,
    /// `XSpace` of XLA: planes (field 1) with an id (1) and a name (2) such as `/host:CPU`.
    XPlane,
    /// `Trace` of Perfetto: packets (field 1), each of whole fields.
    Perfetto,
    /// HTML.
    Web,
}

impl Mark {
    pub(super) fn fits(&self, source: &Source) -> bool {
        let head = source.head();
        match self {
            Mark::Bytes(bytes) => head.starts_with(bytes),
            Mark::BytesAt(at, bytes) => head.get(*at..).is_some_and(|rest| rest.starts_with(bytes)),
            Mark::Line(text) => head.trim_ascii_start().starts_with(text.as_bytes()),
            Mark::Contains(text) => memchr::memmem::find(&head[..head.len().min(4 << 10)], text.as_bytes())
                .is_some_and(|_| !head.contains(&0)),
            Mark::Extension(endings) => is_binary(head) && has_ending(source, endings),
            Mark::Json(fits) => top_level_keys(head).is_some_and(|keys| fits(&keys, head)),
            Mark::ArrayWithoutObjects => {
                let element = head.trim_ascii_start().strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
                element.is_some_and(|element| matches!(element, [b'[' | b'"' | b'-' | b'0'..=b'9', ..]))
            }
            Mark::Tables(beginnings) => {
                head.starts_with(sqlite::MAGIC) && {
                    let tables = sqlite::table_names(source);
                    beginnings.iter().all(|beginning| {
                        tables.iter().any(|table| table.trim_start_matches('_').starts_with(beginning))
                    })
                }
            }
            Mark::Bzip2 => {
                head.starts_with(b"BZh")
                    && head.get(3).is_some_and(u8::is_ascii_digit)
                    && head.get(4..).is_some_and(|rest| {
                        rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90")
                    })
            }
            Mark::GoTrace => {
                head.starts_with(b"go 1.") && head.get(..16).is_some_and(|head| head.ends_with(b"\0")) && {
                    memchr::memmem::find(&head[..16], b" trace").is_some()
                }
            }
            Mark::Otf2 => {
                matches!(head, [0x03, 0x42 | 0x23, ..]) && has_ending(source, &["otf2", "def", "evt", "snap", "thumb"])
            }
            Mark::Tracy => {
                [&b"tlZ\x04"[..], b"tZst", b"trac", b"tr\xfdP"].iter().any(|mark| head.starts_with(mark))
                    && is_binary(head)
            }
            Mark::XPlane => is_xplane(head),
            Mark::Perfetto => is_perfetto(head),
            Mark::Web => {
                let start = head.trim_ascii_start();
                let starts = |tag: &[u8]| start.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag));
                starts(b"<!doctype html") || starts(b"<html")
            }
        }
    }
}

fn is_binary(head: &[u8]) -> bool {
    head.contains(&0) || std::str::from_utf8(head).is_err_and(|error| error.error_len().is_some())
}

fn has_ending(source: &Source, endings: &[&str]) -> bool {
    let ending = source.path().extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| endings.contains(&ending.as_str()))
}

/// The keys of a JSON object as far as a head holds them, in their order; `None` for what is no JSON object.
pub(super) fn top_level_keys(head: &[u8]) -> Option<Vec<String>> {
    let start = head.trim_ascii_start();
    if start.first() != Some(&b'{') {
        return None;
    }
    // What follows the brace of an object: a key, or its end.
    let next = start[1..].trim_ascii_start().first();
    if !matches!(next, Some(b'"' | b'}') | None) {
        return None;
    }
    let (mut keys, mut depth, mut at, mut is_key) = (Vec::new(), 0usize, 0, false);
    while let Some(&byte) = start.get(at) {
        match byte {
            b'"' => {
                let end = string_end(start, at + 1)?;
                if depth == 1 && is_key {
                    keys.push(String::from_utf8_lossy(&start[at + 1..end]).into_owned());
                    is_key = false;
                }
                at = end;
            }
            b'{' | b'[' => {
                depth += 1;
                is_key = depth == 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b',' if depth == 1 => is_key = true,
            _ => {}
        }
        at += 1;
    }
    Some(keys)
}

/// Where the string that begins at `from` ends; the end of the text where it does not.
fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return Some(at),
            _ => at += 1,
        }
    }
    Some(text.len())
}

/// Processed profiles have `preprocessedProfileVersion` in `meta`, raw ones `processType`; both have libraries and threads.
pub(super) fn is_firefox(keys: &[String], head: &[u8]) -> bool {
    let has = |key: &str| keys.iter().any(|known| known == key);
    let says = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    has("meta")
        && (has("libs") || has("threads") || says(b"\"preprocessedProfileVersion\"") || says(b"\"processType\""))
}

/// `"$schema": "https://www.speedscope.app/file-format-schema.json"`, which may stand last.
pub(super) fn is_speedscope(keys: &[String], head: &[u8]) -> bool {
    let has = |key: &str| keys.iter().any(|known| known == key);
    (has("shared") && has("profiles")) || (has("$schema") && memchr::memmem::find(head, b"speedscope").is_some())
}

/// `nodes` with call frames; `samples` and `timeDeltas` follow them.
pub(super) fn is_cpuprofile(keys: &[String], head: &[u8]) -> bool {
    let has = |key: &str| keys.iter().any(|known| known == key);
    has("nodes") && (memchr::memmem::find(head, b"\"callFrame\"").is_some() || (has("samples") && has("startTime")))
}

/// `snapshot` with its `meta`, then `nodes` and `edges` as numbers.
pub(super) fn is_heap_snapshot(keys: &[String], head: &[u8]) -> bool {
    keys.first().is_some_and(|key| key == "snapshot") && memchr::memmem::find(head, b"\"node_fields\"").is_some()
}

/// `head` with call frames, and how many bytes each allocated.
pub(super) fn is_heap_profile(keys: &[String], head: &[u8]) -> bool {
    let says = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    keys.first().is_some_and(|key| key == "head") && says(b"\"callFrame\"") && says(b"\"selfSize\"")
}

/// `rocprofiler-sdk-tool`, an array of processes.
pub(super) fn is_rocprof(keys: &[String], _: &[u8]) -> bool {
    keys.iter().any(|key| key == "rocprofiler-sdk-tool")
}

/// `schema` and `nodes`, whose inputs are tensors.
pub(super) fn is_execution_trace(keys: &[String], head: &[u8]) -> bool {
    let has = |key: &str| keys.iter().any(|known| known == key);
    has("schema") && (has("nodes") || memchr::memmem::find(head, b"\"nodes\"").is_some())
}

/// `resourceSpans`, of services.
pub(super) fn is_otlp(keys: &[String], _: &[u8]) -> bool {
    keys.iter().any(|key| key == "resourceSpans")
}

/// `data`, an array of traces of spans.
pub(super) fn is_jaeger(keys: &[String], head: &[u8]) -> bool {
    let says = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    keys.iter().any(|key| key == "data") && says(b"\"traceID\"") && says(b"\"spans\"")
}

/// A field of a protobuf message: its number and, of one with a length, its bytes as far as they are there.
struct Field<'a> {
    number: u64,
    bytes: Option<&'a [u8]>,
    is_whole: bool,
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The field at a position, which moves past it; `None` where the bytes are not a field.
fn field<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Field<'a>> {
    let tag = varint(bytes, at)?;
    let number = tag >> 3;
    let skip = match tag & 7 {
        0 => {
            varint(bytes, at)?;
            0
        }
        1 => 8,
        5 => 4,
        2 => {
            let length = usize::try_from(varint(bytes, at)?).ok()?;
            let end = at.checked_add(length)?;
            let content = &bytes[*at..end.min(bytes.len())];
            *at = end;
            return (number > 0).then_some(Field { number, bytes: Some(content), is_whole: end <= bytes.len() });
        }
        _ => return None,
    };
    *at += skip;
    (number > 0).then_some(Field { number, bytes: None, is_whole: *at <= bytes.len() })
}

fn is_xplane(head: &[u8]) -> bool {
    let mut at = 0;
    let Some(Field { number: 1, bytes: Some(plane), .. }) = field(head, &mut at) else { return false };
    let mut at = 0;
    for _ in 0..2 {
        match field(plane, &mut at) {
            Some(Field { number: 2, bytes: Some(name), .. }) => {
                return [&b"/host:"[..], b"/device:", b"Task Environment", b"#Chrome", b"/custom:"]
                    .iter()
                    .any(|mark| name.starts_with(mark));
            }
            Some(Field { number: 1, .. }) => {}
            _ => return false,
        }
    }
    false
}

/// Packets one after the other, each a field 1 whose own fields are whole up to its end. Texts do not get that far: a line
/// feed is the tag of a packet, and what follows would have to be the length of a message.
fn is_perfetto(head: &[u8]) -> bool {
    let (mut at, mut packets) = (0, 0);
    while at < head.len() && packets < 8 {
        let Some(packet) = field(head, &mut at) else { return false };
        let (1, Some(content)) = (packet.number, packet.bytes) else { return false };
        let mut inner = 0;
        while inner < content.len() {
            match field(content, &mut inner) {
                Some(member) if member.is_whole => {}
                // The head ends within this packet.
                _ if !packet.is_whole => return packets > 0 || inner > 0,
                _ => return false,
            }
        }
        packets += 1;
    }
    packets > 0
}
