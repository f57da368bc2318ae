//! Arrow IPC, a record batch at a time.
//!
//! ```text
//! file    ARROW1 00 00 | zeros up to 64 bytes, by some writers | messages as in a stream | footer (an index that we do not need) | length | ARROW1
//! stream  message, message, …, end mark (or just the end)
//! message FF FF FF FF | length | metadata | body, as long as the metadata says
//! ```
//! Lengths are checked against the bytes that are there before anything is allocated, because the decoder trusts them.
//! The streams of Arrow before 0.15 (2019), whose messages begin without `FF FF FF FF`, are not read.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc;
use datafusion::arrow::ipc::convert::fb_to_schema;
use datafusion::arrow::ipc::reader::StreamDecoder;

use super::{Header, Sink, damaged, push_arrow};
use crate::error::ImportError;
use crate::trace::Source;

const FILE_HEAD: usize = 8;
const FILE_TAIL: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];

/// How far behind the mark of a file its first message begins at most.
const PADDING_MAX: u64 = 512;

/// A compressed buffer that claims to be longer than so many times its bytes is damaged: zstd reaches 32 768, a block of 128 KiB in 4 bytes.
const COMPRESSION_MAX: u64 = 40_000;

/// The columns, where the head holds the schema.
pub(super) fn columns(source: &Source) -> Option<Vec<String>> {
    let head = source.head();
    let mut messages = Messages::new(head.strip_prefix(b"ARROW1\0\0").unwrap_or(head));
    messages.next().ok()??;
    messages.schema.as_ref().map(names)
}

pub(super) fn read_stream(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    read(source, source.reader()?, sink)?;
    Ok(())
}

pub(super) fn read_file(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let mut reader = source.reader()?;
    let mut head = [0; FILE_HEAD];
    reader.read_exact(&mut head).map_err(|error| damaged(source, "its first bytes".to_owned(), error))?;
    let mut reader = read(source, reader, sink)?;
    // Behind the messages only the footer and the mark remain: without them the writer did not finish.
    let mut footer = Vec::new();
    reader.read_to_end(&mut footer).map_err(|error| damaged(source, "footer".to_owned(), error))?;
    if !footer.ends_with(FILE_TAIL) {
        return Err(damaged(source, "its end".to_owned(), "the file does not end with `ARROW1`: it was cut off"));
    }
    Ok(())
}

fn read<R: Read>(source: &Source, reader: R, sink: &mut dyn Sink) -> Result<R, ImportError> {
    let mut messages = Messages::new(reader);
    let (mut row, mut known) = (1, false);
    loop {
        let at = messages.bytes;
        let next = messages.next().map_err(|what| damaged(source, format!("byte {at}"), what))?;
        if !known && let Some(schema) = &messages.schema {
            sink.header(Header::closed(names(schema)))?;
            known = true;
        }
        match next {
            Some(Some(batch)) => push_arrow(source, &batch, &mut row, sink)?,
            Some(None) => {}
            None if known => return Ok(messages.reader),
            None => return Err(damaged(source, format!("byte {at}"), "no schema")),
        }
    }
}

fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

struct Messages<R> {
    reader: R,
    decoder: StreamDecoder,
    /// As soon as its message is read: the decoder looks at it when the next one comes, and there may be none.
    schema: Option<SchemaRef>,
    /// Read so far.
    bytes: u64,
}

impl<R: Read> Messages<R> {
    fn new(reader: R) -> Messages<R> {
        Messages { reader, decoder: StreamDecoder::new(), schema: None, bytes: 0 }
    }

    /// The next message: a record batch or something else; `None` at the end.
    fn next(&mut self) -> Result<Option<Option<RecordBatch>>, String> {
        let mut mark = self.take(4)?;
        while mark == [0; 4] && self.bytes < PADDING_MAX {
            mark = self.take(4)?;
        }
        if mark.is_empty() || mark != CONTINUATION {
            // The end, or the footer of a file that has no end mark.
            return if mark.is_empty() || self.schema.is_some() {
                Ok(None)
            } else {
                Err("no message begins here".to_owned())
            };
        }
        let length = self.take(4)?;
        let Ok(length) = <[u8; 4]>::try_from(length.as_slice()) else {
            return Err("cut off within a message".to_owned());
        };
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 {
            return Ok(None);
        }
        let metadata = self.take(length)?;
        if metadata.len() < length {
            return Err("cut off within the metadata of a message".to_owned());
        }
        let message = ipc::root_as_message(&metadata).map_err(|error| format!("unreadable metadata: {error}"))?;
        let body_length = usize::try_from(message.bodyLength()).map_err(|_| "a body of negative length".to_owned())?;
        let body = self.take(body_length)?;
        if body.len() < body_length {
            return Err("cut off within the body of a message".to_owned());
        }
        check_buffers(message, &body)?;
        let mut head = Vec::with_capacity(metadata.len() + 8);
        head.extend_from_slice(&CONTINUATION);
        head.extend_from_slice(&(length as u32).to_le_bytes());
        head.extend_from_slice(&metadata);
        let decoder = &mut self.decoder;
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            let mut decoded = None;
            for part in [head, body] {
                let mut part = Buffer::from_vec(part);
                while !part.is_empty() {
                    decoded = decoder.decode(&mut part)?.or(decoded);
                }
            }
            let schema = message.header_as_schema().map(fb_to_schema);
            Ok::<_, datafusion::arrow::error::ArrowError>((decoded, schema))
        }));
        let Ok(decoded) = decoded else { return Err("a message contradicts itself".to_owned()) };
        let (batch, schema) = decoded.map_err(|error| error.to_string())?;
        if let Some(schema) = schema {
            self.schema.get_or_insert(Arc::new(schema));
        }
        Ok(Some(batch))
    }

    /// So many bytes, or as many as there are.
    fn take(&mut self, count: usize) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        (&mut self.reader).take(count as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        self.bytes += bytes.len() as u64;
        Ok(bytes)
    }
}

/// Buffers lie within the body, and a compressed one does not claim an absurd length.
fn check_buffers(message: ipc::Message<'_>, body: &[u8]) -> Result<(), String> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return Ok(()) };
    let compressed = batch.compression().is_some();
    for buffer in batch.buffers().iter().flatten() {
        let inside = usize::try_from(buffer.offset()).ok().and_then(|from| {
            let to = from.checked_add(usize::try_from(buffer.length()).ok()?)?;
            body.get(from..to)
        });
        let bytes = inside.ok_or("a buffer lies outside of its message")?;
        if compressed && let Some(length) = bytes.first_chunk::<8>() {
            let length = i64::from_le_bytes(*length);
            // -1 stands for a buffer that is not compressed after all.
            if length < -1 || length as u64 > (bytes.len() as u64).saturating_mul(COMPRESSION_MAX) && length != -1 {
                return Err(format!("a buffer of {} bytes claims to hold {length}", bytes.len()));
            }
        }
    }
    Ok(())
}
