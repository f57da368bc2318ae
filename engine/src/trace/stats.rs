//! What a reader left out, repaired or guessed: the rows of `import_stats`, and the accounts behind them. The words are in
//! [`findings`].
//!
//! Every record that a reader sees either becomes a row or is counted as left out. [`Stats::records`] books what was
//! read; [`Stats::left_out`] books what became no row, [`Stats::became_others`] what became more or fewer rows than one; [`Stats::note`] says something about records that did become rows.
//! When the run is finished the two sides must agree, else a row `unaccounted` of severity `lost` says so.

use std::collections::BTreeMap;

use super::findings::{self, Finding};

/// A row of `import_stats`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// What happened.
    pub finding: Finding,
    /// How often.
    pub count: u64,
    /// The first case, with its place.
    pub example: String,
}

/// The findings of one run.
#[derive(Debug, Default)]
pub struct Stats {
    found: BTreeMap<Finding, (u64, String)>,
    records: Option<u64>,
    left_out: u64,
    became_others: u64,
}

impl Stats {
    /// Books `count` records as read.
    pub fn records(&mut self, count: u64) {
        *self.records.get_or_insert(0) += count;
    }

    /// Counts records that became no row; `example` is called for the first one.
    pub fn left_out(&mut self, finding: Finding, count: u64, example: impl FnOnce() -> String) {
        self.left_out += count;
        self.note(finding, count, example);
    }

    /// Counts records that became rows, but not one each: the rows come from several of them, or one became many.
    pub fn became_others(&mut self, finding: Finding, count: u64, example: impl FnOnce() -> String) {
        self.became_others += count;
        self.note(finding, count, example);
    }

    /// Counts something about records that became rows, or about no record at all.
    pub fn note(&mut self, finding: Finding, count: u64, example: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        match self.found.get_mut(&finding) {
            Some((total, _)) => *total += count,
            None => {
                self.found.insert(finding, (count, example()));
            }
        }
    }

    /// Takes over what another reader of the same run found.
    pub fn absorb(&mut self, other: Stats) {
        for (finding, (count, example)) in other.found {
            self.note(finding, count, || example);
        }
        self.left_out += other.left_out;
        self.became_others += other.became_others;
        if let Some(records) = other.records {
            self.records(records);
        }
    }

    /// How often it was found.
    pub fn count(&self, finding: Finding) -> u64 {
        self.found.get(&finding).map_or(0, |(count, _)| *count)
    }

    /// The rows, after the check that records and rows add up: `rows` is the number of table rows that came from
    /// records.
    pub(crate) fn close(mut self, rows: u64) -> Vec<Stat> {
        if let Some(records) = self.records {
            let left_out = self.left_out;
            let rows = rows + self.became_others;
            let accounted = rows + left_out;
            if records != accounted {
                self.note(findings::UNACCOUNTED, records.abs_diff(accounted), || {
                    format!("{records} records read, but {rows} rows and {left_out} counted as left out")
                });
            }
            self.note(findings::RECORDS_READ, records, || format!("{rows} became rows"));
        }
        self.found.into_iter().map(|(finding, (count, example))| Stat { finding, count, example }).collect()
    }
}
