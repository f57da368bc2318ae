//! `pariter_5m`: 8 workers of a Taskflow executor run one graph of 1000 independent tasks thousands of times.
//!
//! The statistics are those of a recording of 5.1 million tasks with Taskflow 4.0.0 on a machine with 2 cores: shares of
//! the workers, durations of 263 ns + uniform(0..430) with 1 in 10 000 preempted, gaps of 60 to 120 ns with 1 to 2 % of
//! microseconds and a few hundred sleeps. Level 0 only, type `static` only. The same tasks come in each of the three
//! forms that Taskflow writes; JSON and TFPX truncate to microseconds as it does.

use std::io::{self, Write};

use crate::random::Random;

/// Tasks per worker in the recording.
const SHARES: [i64; 8] = [715_095, 81_291, 1_458_006, 471_613, 611_774, 432_678, 724_939, 604_604];
const RECORDED: i64 = 5_100_000;
const ORIGIN: i64 = 4_003_123_456_789;
const FIRST_BEGIN: i64 = 194_000;
/// Distinct names of the named variant: `mm_0` to `mm_999`.
const NAMES: i64 = 1_000;

/// Which file Taskflow would have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Binary of 3.9 to 4.0, nanoseconds.
    T0,
    /// JSON of 2.6 to 4.0.
    Json,
    /// Binary of 4.1.
    Tfpx,
}

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct Pariter {
    /// About how many tasks (rounded down per worker).
    pub tasks: i64,
    /// `mm_<i>` instead of unnamed tasks.
    pub named: bool,
}

struct Task {
    begin: i64,
    end: i64,
    name: i64,
}

impl Pariter {
    /// Writes the trace.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write(self, form: Form, out: &mut impl Write) -> io::Result<()> {
        match form {
            Form::T0 => self.write_t0(out),
            Form::Json => self.write_json(out),
            Form::Tfpx => self.write_tfpx(out),
        }
    }

    fn tasks_of(self, worker: usize) -> i64 {
        SHARES[worker] * self.tasks / RECORDED
    }

    /// The tasks of one worker, in order; times since the origin.
    fn worker(self, worker: usize) -> impl Iterator<Item = Task> {
        let mut random = Random::new(worker as u64 + 1);
        let mut free = FIRST_BEGIN + random.between(0, 50_000);
        (0..self.tasks_of(worker)).map(move |_| {
            let begin = free + gap(&mut random);
            let end = begin + duration(&mut random);
            free = end;
            Task { begin, end, name: random.between(0, NAMES) }
        })
    }

    fn write_t0(self, out: &mut impl Write) -> io::Result<()> {
        let mut number = |value: i64| out.write_all(&value.to_le_bytes());
        number(1)?; // executors
        number(0)?; // uid
        number(ORIGIN)?;
        number(SHARES.len() as i64)?;
        for worker in 0..SHARES.len() {
            out.write_all(&1i64.to_le_bytes())?; // levels
            out.write_all(&self.tasks_of(worker).to_le_bytes())?;
            for task in self.worker(worker) {
                let name = self.name(&task);
                out.write_all(&(name.len() as u64).to_le_bytes())?;
                out.write_all(name.as_bytes())?;
                out.write_all(&1i32.to_le_bytes())?; // static
                out.write_all(&(ORIGIN + task.begin).to_le_bytes())?;
                out.write_all(&(ORIGIN + task.end).to_le_bytes())?;
            }
        }
        Ok(())
    }

    fn write_json(self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "[\n{{\"executor\":\"0\",\"data\":[")?;
        for worker in 0..SHARES.len() {
            let comma = if worker == 0 { "" } else { "," };
            write!(out, "{comma}{{\"worker\":{worker},\"level\":0,\"data\":[")?;
            for (index, task) in self.worker(worker).enumerate() {
                let comma = if index == 0 { "" } else { "," };
                write!(out, "{comma}{{\"span\":[{},{}],\"name\":\"", task.begin / 1000, task.end / 1000)?;
                if self.named {
                    write!(out, "mm_{}", task.name)?;
                } else {
                    write!(out, "{worker}_{index}")?;
                }
                write!(out, "\",\"type\":\"static\"}}")?;
            }
            write!(out, "]}}")?;
        }
        write!(out, "]}}\n]\n")
    }

    fn write_tfpx(self, out: &mut impl Write) -> io::Result<()> {
        let names: Vec<String> =
            if self.named { (0..NAMES).map(|name| format!("mm_{name}")).collect() } else { Vec::new() };
        let mut offsets = Vec::with_capacity(names.len());
        let mut table_bytes = 0u32;
        for name in &names {
            offsets.push(table_bytes);
            table_bytes += name.len() as u32;
        }
        out.write_all(b"TFPX")?;
        out.write_all(&1u16.to_le_bytes())?;
        out.write_all(&0u16.to_le_bytes())?;
        out.write_all(&1u32.to_le_bytes())?;
        out.write_all(&0u64.to_le_bytes())?;
        out.write_all(&(ORIGIN / 1000).to_le_bytes())?;
        out.write_all(&table_bytes.to_le_bytes())?;
        out.write_all(&(SHARES.len() as u32).to_le_bytes())?;
        out.write_all(names.concat().as_bytes())?;
        for worker in 0..SHARES.len() {
            for number in [worker as u32, 0, self.tasks_of(worker) as u32] {
                out.write_all(&number.to_le_bytes())?;
            }
            let mut previous = 0;
            for task in self.worker(worker) {
                let (begin, end) = (task.begin / 1000, task.end / 1000);
                varint(out, (begin - previous) as u64)?;
                varint(out, (end - begin) as u64)?;
                previous = begin;
                let (offset, length) = match offsets.get(task.name as usize) {
                    Some(&offset) => (offset, names[task.name as usize].len() as u8),
                    None => (0, 0),
                };
                out.write_all(&offset.to_le_bytes())?;
                out.write_all(&[length])?; // type 0 = static
            }
        }
        Ok(())
    }

    fn name(self, task: &Task) -> String {
        if self.named { format!("mm_{}", task.name) } else { String::new() }
    }
}

fn duration(random: &mut Random) -> i64 {
    match random.between(0, 10_000) {
        0 => random.between(100_000, 260_000_000) / random.between(1, 400),
        _ => 263 + random.between(0, 431),
    }
}

fn gap(random: &mut Random) -> i64 {
    match random.between(0, 100_000) {
        0..=3 => random.between(1_000_000, 1_000_000_000) / random.between(1, 100),
        4..=1_500 => random.between(1_000, 8_000),
        _ => random.between(60, 121),
    }
}

/// Unsigned LEB128.
fn varint(out: &mut impl Write, mut value: u64) -> io::Result<()> {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.write_all(&[low]);
        }
        out.write_all(&[low | 0x80])?;
    }
}
