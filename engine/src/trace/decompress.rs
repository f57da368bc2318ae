//! Decompression that recovers as much of a damaged stream as possible.
//!
//! ```text
//! gzip    1f 8b 08 flags time(4) xx os  [extra] [name] [comment] [crc]   deflate…   crc32(4) length(4)     and so on
//! zstd    28 b5 2f fd  frame header  blocks…  [checksum]                                                   and so on
//! ```
//! Both may consist of several parts one after the other (`cat a.gz b.gz`), and zeros after the last one are padding, as
//! from tapes and disk blocks. Where a stream is truncated or does not decode, all bytes before that place are returned, and
//! then an error of kind `UnexpectedEof`, by which importers know a truncated file. (The decoders of the underlying
//! libraries withhold what they had produced in the failing call.) The fault is also kept in a [`Damage`]: a text may be
//! complete although its checksum is wrong.

use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that a zstd decoder may flush at once.
const DECODED_BYTES: usize = 128 << 10;

/// The first damage that any reader of a source met.
#[derive(Debug, Clone, Default)]
pub(super) struct Damage(Arc<Mutex<Option<String>>>);

impl Damage {
    /// What was found, with its place.
    pub(super) fn found(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what was found, and makes it an error.
    fn meet(&self, place: u64, what: &str) -> io::Error {
        let what = format!("the compressed stream is damaged at byte {place} of the file: {what}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what.clone());
        io::Error::new(io::ErrorKind::UnexpectedEof, what)
    }

    fn cut(&self, place: u64) -> io::Error {
        let what = format!("the compressed file breaks off at byte {place}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what.clone());
        io::Error::new(io::ErrorKind::UnexpectedEof, what)
    }
}

/// Stored bytes, counted.
struct Stored<R> {
    inner: R,
    place: u64,
    damage: Damage,
}

impl<R: BufRead> Stored<R> {
    fn bytes(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.place += bytes as u64;
        self.inner.consume(bytes);
    }

    fn byte(&mut self) -> io::Result<u8> {
        let Some(&byte) = self.inner.fill_buf()?.first() else { return Err(self.damage.cut(self.place)) };
        self.consume(1);
        Ok(byte)
    }

    fn exact<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    /// Skips zeros behind a part. Returns whether the stream ends there.
    fn ends(&mut self) -> io::Result<bool> {
        loop {
            let bytes = self.inner.fill_buf()?;
            if bytes.is_empty() {
                return Ok(true);
            }
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            if zeros == 0 {
                return Ok(false);
            }
            self.consume(zeros);
        }
    }

    fn damaged<T>(&self, what: &str) -> io::Result<T> {
        Err(self.damage.meet(self.place, what))
    }
}

/// The text of a gzip stream.
pub(super) struct Gzip<R> {
    stored: Stored<R>,
    inflate: Decompress,
    checksum: Crc,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a part, which need not be there.
    Between,
    Inside,
    /// Behind the last byte of the deflate.
    Trailer,
    /// Behind the last byte that could be made out.
    Failed,
    Ended,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(inner: R, damage: Damage) -> Gzip<R> {
        let stored = Stored { inner, place: 0, damage };
        Gzip { stored, inflate: Decompress::new(false), checksum: Crc::new(), state: State::Between }
    }

    /// Reads the header of the next part; `false` at the end.
    fn begin(&mut self) -> io::Result<bool> {
        const CRC: u8 = 2;
        const EXTRA: u8 = 4;
        const NAME: u8 = 8;
        const COMMENT: u8 = 16;
        let stored = &mut self.stored;
        if stored.place > 0 && stored.ends()? {
            return Ok(false);
        }
        if stored.bytes()?.first() != Some(&0x1f) {
            return stored.damaged("what follows the last part is no gzip");
        }
        let [_, magic, method, flags, ..] = stored.exact::<10>()?;
        if (magic, method) != (0x8b, 8) || flags & 0xe0 != 0 {
            return stored.damaged("a header of gzip should stand before this");
        }
        if flags & EXTRA != 0 {
            for _ in 0..u16::from_le_bytes(stored.exact()?) {
                stored.byte()?;
            }
        }
        for flag in [NAME, COMMENT] {
            if flags & flag != 0 {
                while stored.byte()? != 0 {}
            }
        }
        if flags & CRC != 0 {
            stored.exact::<2>()?;
        }
        self.inflate.reset(false);
        self.checksum.reset();
        Ok(true)
    }

    fn check(&mut self) -> io::Result<()> {
        let (sum, length) = (u32::from_le_bytes(self.stored.exact()?), u32::from_le_bytes(self.stored.exact()?));
        if (sum, length) == (self.checksum.sum(), self.checksum.amount()) {
            return Ok(());
        }
        self.stored.damaged("the checksum is not that of the text before it, so some of it may be wrong")
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            // Whatever goes wrong, there is nothing behind it.
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Ok(0),
                State::Failed => return self.stored.damaged("this is no deflate"),
                State::Between => {
                    if !self.begin()? {
                        return Ok(0);
                    }
                    self.state = State::Inside;
                }
                State::Trailer => {
                    self.check()?;
                    self.state = State::Between;
                }
                State::Inside => {
                    let input = self.stored.bytes()?;
                    let is_end = input.is_empty();
                    let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
                    let status = self.inflate.decompress(input, buffer, FlushDecompress::None);
                    self.stored.consume((self.inflate.total_in() - before_in) as usize);
                    let made = (self.inflate.total_out() - before_out) as usize;
                    self.checksum.update(&buffer[..made]);
                    self.state = match status {
                        Ok(Status::StreamEnd) => State::Trailer,
                        Ok(_) if is_end && made == 0 => return Err(self.stored.damage.cut(self.stored.place)),
                        Ok(_) => State::Inside,
                        Err(_) => State::Failed,
                    };
                    if made > 0 {
                        return Ok(made);
                    }
                }
            }
        }
    }
}

/// The text of a zstd stream.
pub(super) struct Zstd<R> {
    stored: Stored<R>,
    decoder: Decoder<'static>,
    /// Decoded bytes, and how many of them were handed out.
    decoded: Vec<u8>,
    filled: usize,
    used: usize,
    /// How many bytes the decoder wants next: no more than one block, so that one that does not decode takes none before it
    /// along. 0 between parts.
    wanted: usize,
    ended: bool,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(inner: R, damage: Damage) -> io::Result<Zstd<R>> {
        Ok(Zstd {
            stored: Stored { inner, place: 0, damage },
            decoder: Decoder::new()?,
            decoded: vec![0; DECODED_BYTES],
            filled: 0,
            used: 0,
            wanted: 0,
            ended: false,
        })
    }

    /// Decodes until there is something to hand out, or the end.
    fn decode(&mut self) -> io::Result<()> {
        while self.used == self.filled && !self.ended {
            // Whatever goes wrong, there is nothing behind it.
            self.ended = true;
            if self.wanted == 0 && self.stored.place > 0 {
                if self.stored.ends()? {
                    return Ok(());
                }
                self.decoder.reinit()?;
            }
            let stored = self.stored.bytes()?;
            if stored.is_empty() {
                return Err(self.stored.damage.cut(self.stored.place));
            }
            let mut input = InBuffer::around(&stored[..stored.len().min(self.wanted.max(1))]);
            let mut output = OutBuffer::around(self.decoded.as_mut_slice());
            let decoded = self.decoder.run(&mut input, &mut output);
            (self.filled, self.used) = (output.pos(), 0);
            let read = input.pos();
            self.stored.consume(read);
            match decoded {
                Ok(wanted) => self.wanted = wanted,
                Err(error) => return self.stored.damaged(&error.to_string()),
            }
            self.ended = false;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decode()?;
        let count = buffer.len().min(self.filled - self.used);
        buffer[..count].copy_from_slice(&self.decoded[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::GzBuilder::new()
            .filename("a name")
            .comment("a comment")
            .extra(vec![1, 2, 3])
            .write(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).expect("memory does not fail");
        encoder.finish().expect("memory does not fail")
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
        encoder.include_checksum(true).expect("a flag");
        encoder.write_all(text).expect("memory does not fail");
        encoder.finish().expect("memory does not fail")
    }

    /// The text, and what was wrong.
    fn read(stored: &[u8], at_once: usize) -> (Vec<u8>, Option<String>) {
        let damage = Damage::default();
        let stored_bytes = BufReader::with_capacity(at_once, stored);
        let mut reader: Box<dyn Read> = match stored[0] {
            0x1f => Box::new(Gzip::new(stored_bytes, damage.clone())),
            _ => Box::new(Zstd::new(stored_bytes, damage.clone()).expect("a decoder")),
        };
        let mut text = Vec::new();
        let mut buffer = vec![0; at_once];
        let failed = loop {
            match reader.read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => text.extend_from_slice(&buffer[..count]),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                    assert_eq!(Some(error.to_string()), damage.found());
                    break true;
                }
            }
        };
        assert_eq!(failed, damage.found().is_some());
        assert_eq!(reader.read(&mut buffer).ok(), Some(0), "what failed has ended");
        (text, damage.found())
    }

    /// Text that does not compress to nothing.
    fn text(bytes: usize) -> Vec<u8> {
        let numbers = (0_u64..).map(|number| format!("{},", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        numbers.flat_map(String::into_bytes).take(bytes).collect()
    }

    #[test]
    fn parts_follow_each_other_and_zeros_are_padding() {
        let text = text(700_000);
        for encode in [gzip, zstd] {
            let (one, other) = (encode(&text[..300_000]), encode(&text[300_000..]));
            let empty = encode(b"");
            for padding in [0, 1, 7, 70_000] {
                let stored = [&one[..], &empty, &other, &vec![0; padding]].concat();
                for at_once in [1, 1000, 1 << 20] {
                    assert_eq!(read(&stored, at_once), (text.clone(), None));
                }
            }
        }
    }

    #[test]
    fn what_follows_the_last_part_is_said() {
        for encode in [gzip, zstd] {
            let stored = [encode(b"all of it"), b"\0\0garbage".to_vec()].concat();
            let (text, damage) = read(&stored, 1000);
            assert_eq!(text, b"all of it");
            let damage = damage.expect("garbage");
            assert!(damage.contains(&format!("at byte {}", stored.len() - 7)), "{damage}");
        }
    }

    #[test]
    fn every_cut_keeps_what_came_before() {
        let text = text(3_000);
        for encode in [gzip, zstd] {
            let stored = encode(&text);
            for length in 1..stored.len() {
                let (kept, damage) = read(&stored[..length], 1000);
                assert!(text.starts_with(&kept));
                assert_eq!(damage, Some(format!("the compressed file breaks off at byte {length}")));
            }
        }
    }

    #[test]
    fn one_wrong_bit_is_noticed_and_keeps_what_came_before() {
        let text = text(900_000);
        for (encode, block) in [(gzip as fn(&[u8]) -> Vec<u8>, 100), (zstd, 128 << 10)] {
            let stored = encode(&text);
            for at in (60..stored.len()).step_by(stored.len() / 40) {
                let mut flipped = stored.clone();
                flipped[at] ^= 0x10;
                let (kept, damage) = read(&flipped, 1 << 20);
                assert!(damage.is_some(), "byte {at}");
                let same = kept.iter().zip(&text).take_while(|(kept, text)| kept == text).count();
                let before = text.len() as f64 * at as f64 / stored.len() as f64;
                assert!(same as f64 > before - 2.0 * f64::from(block) - 40_000.0, "byte {at}: {same} of {before}");
            }
            let mut wrong_sum = stored.clone();
            let at = stored.len() - if stored[0] == 0x1f { 8 } else { 4 };
            wrong_sum[at] ^= 1;
            let (kept, damage) = read(&wrong_sum, 1 << 20);
            assert!(damage.is_some_and(|damage| damage.contains("checksum")));
            assert!(text.starts_with(&kept) && kept.len() > text.len() - (128 << 10));
        }
    }
}
