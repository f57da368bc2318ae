//! Wall time, processor time and memory of a piece of work, and a line per figure.

use std::time::{Duration, Instant};

/// What one run of something cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// By the clock on the wall.
    pub wall: Duration,
    /// Processor time of all threads of the process.
    pub cpu: Duration,
}

/// Runs `work` once.
pub fn once<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (cpu, wall) = (cpu_time(), Instant::now());
    let value = work();
    (value, Cost { wall: wall.elapsed(), cpu: cpu_time() - cpu })
}

/// Runs `work` `runs` times and prints minimum, median and maximum; returns the median.
#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
pub fn repeat<T>(label: &str, runs: usize, mut work: impl FnMut() -> T) -> Cost {
    let mut costs: Vec<Cost> = (0..runs.max(1)).map(|_| once(&mut work).1).collect();
    let of = |costs: &mut Vec<Cost>, key: fn(&Cost) -> Duration| {
        costs.sort_by_key(key);
        (key(&costs[0]), key(&costs[costs.len() / 2]), key(&costs[costs.len() - 1]))
    };
    let wall = of(&mut costs, |cost| cost.wall);
    let cpu = of(&mut costs, |cost| cost.cpu);
    let text = |(low, median, high): (Duration, Duration, Duration)| {
        format!("{:.3} [{:.3}..{:.3}] s", median.as_secs_f64(), low.as_secs_f64(), high.as_secs_f64())
    };
    println!("{label:<58} wall {}   cpu {}", text(wall), text(cpu));
    Cost { wall: wall.1, cpu: cpu.1 }
}

/// Processor time of this process so far (Linux: fields 14 and 15 of /proc/self/stat, in ticks of 10 ms); zero elsewhere.
pub fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The most memory that this process had resident so far, in bytes (Linux); zero elsewhere.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
}
