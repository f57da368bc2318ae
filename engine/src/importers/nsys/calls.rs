//! Calls: which call launched what, by the correlation id that a call and its work share.

use super::lanes::Process;

/// Calls by correlation id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// (correlation, process, start, task), sorted once all are there.
    calls: Vec<(i64, Process, i64, u32)>,
}

impl Calls {
    pub(super) fn push(&mut self, process: Process, correlation: i64, start: i64, task: u32) {
        self.calls.push((correlation, process, start, task));
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.calls.capacity() * size_of::<(i64, Process, i64, u32)>()
    }

    pub(super) fn sort(&mut self) {
        self.calls.sort_unstable();
    }

    /// The process of a correlation, when only one has it.
    pub(super) fn process(&self, correlation: i64) -> Option<Process> {
        let calls = self.of(correlation);
        let first = calls.first()?.1;
        calls.iter().all(|call| call.1 == first).then_some(first)
    }

    fn of(&self, correlation: i64) -> &[(i64, Process, i64, u32)] {
        let from = self.calls.partition_point(|call| call.0 < correlation);
        let to = self.calls.partition_point(|call| call.0 <= correlation);
        &self.calls[from..to]
    }

    /// The innermost call of a correlation, and whether there is a doubt about the process.
    pub(super) fn innermost(&self, process: Option<Process>, correlation: i64) -> (Option<u32>, bool) {
        let calls = self.of(correlation);
        match process {
            // Sorted by process and start: the last one began last.
            Some(process) => (calls.iter().rev().find(|call| call.1 == process).map(|call| call.3), false),
            None => (calls.last().map(|call| call.3), self.process(correlation).is_none() && !calls.is_empty()),
        }
    }
}
