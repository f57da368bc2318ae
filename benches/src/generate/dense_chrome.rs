//! A dense Chrome trace: kernels on three streams, as a profiler of a busy GPU writes them.
//!
//! ```text
//! {"ph":"X","cat":"kernel","name":"void kernel_17<float, 4>(float*, float const*, int)","pid":0,"tid":7,"ts":1000004.250,"dur":1.911,"args":{"stream":7,"correlation":3}}
//! ```
//! 159 bytes an event on average, 40 names, durations of 0.3 to 3.5 µs and gaps of 0.4 to 4 µs per stream, times with
//! three decimals, a line per event. The same events come as an array or under `traceEvents`, and dense or pretty-printed.

use std::io::{self, Write};

use crate::random::Random;

/// The three streams.
const STREAMS: [i64; 3] = [7, 13, 20];
const NAMES: i64 = 40;
const START_NS: i64 = 1_000_000_000;

/// How the events are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `[…]`.
    Array,
    /// `{"schemaVersion":1,"traceEvents":[…],"traceName":"dense"}`.
    Object,
    /// The object form with a key and a blank per line, as Kineto prints.
    Pretty,
}

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct DenseChrome {
    /// Number of events.
    pub events: i64,
    /// Bytes of a key before the events that nobody knows.
    pub foreign_bytes: usize,
}

impl DenseChrome {
    /// Writes the trace.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write(self, form: Form, out: &mut impl Write) -> io::Result<()> {
        out.write_all(match form {
            Form::Array => b"[\n".as_slice(),
            _ => b"{\"schemaVersion\":1,".as_slice(),
        })?;
        if form != Form::Array {
            if self.foreign_bytes > 0 {
                out.write_all(b"\"foreign\":\"")?;
                let line = [b'x'; 4096];
                let mut left = self.foreign_bytes;
                while left > 0 {
                    let length = left.min(line.len());
                    out.write_all(&line[..length])?;
                    left -= length;
                }
                out.write_all(b"\",")?;
            }
            out.write_all(b"\"traceEvents\":[\n")?;
        }
        let mut random = Random::new(1);
        let mut free = [START_NS; STREAMS.len()];
        for number in 0..self.events {
            let lane = random.between(0, STREAMS.len() as i64) as usize;
            let start = free[lane] + random.between(400, 4_000);
            let duration = random.between(300, 3_500);
            free[lane] = start + duration;
            let comma = if number + 1 < self.events { "," } else { "" };
            self.event(form, number, STREAMS[lane], (start, duration), random.between(0, NAMES), comma, out)?;
        }
        out.write_all(match form {
            Form::Array => b"]\n".as_slice(),
            _ => b"],\"traceName\":\"dense\"}\n".as_slice(),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of a line")]
    fn event(
        self,
        form: Form,
        number: i64,
        stream: i64,
        (start, duration): (i64, i64),
        name: i64,
        comma: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let us = |ns: i64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
        let (ts, dur) = (us(start), us(duration));
        let name = format!("void kernel_{name:02}<float, 4>(float*, float const*)");
        if form == Form::Pretty {
            return writeln!(
                out,
                "  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": {stream},\n    \"ts\": {ts}, \"dur\": {dur},\n    \
                 \"args\": {{\n      \"stream\": {stream}, \"correlation\": {number}\n    }}\n  }}{comma}"
            );
        }
        writeln!(
            out,
            r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{ts},"dur":{dur},"args":{{"stream":{stream},"correlation":{number}}}}}{comma}"#
        )
    }
}
