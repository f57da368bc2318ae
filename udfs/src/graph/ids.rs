//! The tasks of one run, numbered 0, 1, 2, … in the order of their ids.
//!
//! Task ids are `run_number · 2^40 + position`, so those of one run usually are a dense ascending range: the index of a
//! task is then its id minus the smallest one, and nothing has to be stored. A range with holes (a filtered table) keeps
//! a bit per slot. Other ids are sorted, with a table of buckets in front, so that a look-up costs two or three cache
//! misses. In each form a smaller index means a smaller id: ties between ids can be settled on indices.

use crate::graph::NONE;

/// A task that occurs twice in a run: its duration, and so the path, would be ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateTask(
    /// The id that occurs more than once; the smallest one.
    pub i64,
);

/// The numbering of the tasks of one run.
#[derive(Debug)]
pub struct TaskIds(Form);

#[derive(Debug)]
enum Form {
    /// Slot `i` is the id `base + i`.
    Range {
        base: i64,
        len: usize,
        /// The row of each slot, [`NONE`] for holes; absent when row and slot are the same number.
        row_of: Option<Vec<u32>>,
        /// A bit per slot, when there are holes.
        present: Option<Vec<u64>>,
    },
    /// Slot `i` is the id `ids[i]`.
    Sorted {
        ids: Vec<i64>,
        row_of: Vec<u32>,
        /// The ids with the bucket `b = (id - ids[0]) >> shift` are `ids[starts[b]..starts[b + 1]]`.
        shift: u32,
        starts: Vec<u32>,
    },
}

/// A range may have this many slots per task; then a list of sorted ids is smaller.
const SLOTS_PER_TASK: u64 = 4;

impl Default for TaskIds {
    /// No tasks.
    fn default() -> Self {
        TaskIds(Form::Range { base: 0, len: 0, row_of: None, present: None })
    }
}

impl TaskIds {
    /// Numbers the ids, which come in any order in slices of any length. A task's *row* is its position in the
    /// concatenation of the slices. At most `u32::MAX - 1` ids: the caller checks.
    pub fn number(slices: &[&[i64]]) -> Result<TaskIds, DuplicateTask> {
        let count: usize = slices.iter().map(|slice| slice.len()).sum();
        // The usual case first, in one pass: ids of a whole table, in order.
        if let Some(&base) = slices.iter().find_map(|slice| slice.first())
            && are_consecutive(slices, base)
        {
            return Ok(TaskIds(Form::Range { base, len: count, row_of: None, present: None }));
        }
        let all = || slices.iter().flat_map(|slice| slice.iter().copied());
        let (Some(base), Some(last)) = (all().min(), all().max()) else {
            return Ok(TaskIds::default());
        };
        let span = last.abs_diff(base);
        if span < (count as u64).saturating_mul(SLOTS_PER_TASK).min(u64::from(NONE)) {
            number_range(slices, base, span as usize + 1, count)
        } else {
            number_sorted(slices, count)
        }
        .map(TaskIds)
    }

    /// `count` tasks with the ids `base`, `base + 1`, …
    pub fn consecutive(base: i64, count: usize) -> TaskIds {
        TaskIds(Form::Range { base, len: count, row_of: None, present: None })
    }

    /// How many indices there are; with holes, more than tasks.
    pub fn slots(&self) -> usize {
        match &self.0 {
            Form::Range { len, .. } => *len,
            Form::Sorted { ids, .. } => ids.len(),
        }
    }

    /// The index of a task, if it is there.
    #[inline]
    pub fn index(&self, id: i64) -> Option<u32> {
        match &self.0 {
            Form::Range { base, len, present, .. } => {
                let slot = id.wrapping_sub(*base) as u64;
                (slot < *len as u64 && present.as_ref().is_none_or(|bits| bit(bits, slot as usize)))
                    .then_some(slot as u32)
            }
            Form::Sorted { ids, shift, starts, .. } => {
                let first = ids.first().filter(|first| **first <= id)?;
                let bucket = id.abs_diff(*first) >> shift;
                let bucket = usize::try_from(bucket).ok().filter(|bucket| bucket + 1 < starts.len())?;
                let from = starts[bucket] as usize;
                let place = ids[from..starts[bucket + 1] as usize].binary_search(&id).ok()?;
                Some((from + place) as u32)
            }
        }
    }

    /// The smallest id, when index = id - smallest id for every task (a range without holes): the fast path for mapping
    /// millions of ids.
    pub fn dense_base(&self) -> Option<i64> {
        match &self.0 {
            Form::Range { base, present: None, .. } => Some(*base),
            _ => None,
        }
    }

    /// The id at an index.
    pub fn id(&self, index: u32) -> i64 {
        match &self.0 {
            Form::Range { base, .. } => base + i64::from(index),
            Form::Sorted { ids, .. } => ids[index as usize],
        }
    }

    /// The row of the task at an index; `None` in a hole.
    #[inline]
    pub fn row(&self, index: u32) -> Option<u32> {
        let row = match &self.0 {
            Form::Range { row_of: None, .. } => index,
            Form::Range { row_of: Some(row_of), .. } | Form::Sorted { row_of, .. } => row_of[index as usize],
        };
        (row != NONE).then_some(row)
    }

    /// Whether each task's index is its row.
    pub fn rows_are_indices(&self) -> bool {
        matches!(&self.0, Form::Range { row_of: None, .. })
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        match &self.0 {
            Form::Range { row_of, present, .. } => {
                row_of.as_ref().map_or(0, |rows| rows.len() * 4) + present.as_ref().map_or(0, |bits| bits.len() * 8)
            }
            Form::Sorted { ids, row_of, starts, .. } => ids.len() * 8 + row_of.len() * 4 + starts.len() * 4,
        }
    }
}

/// Whether the ids are `base`, `base + 1`, … up to the last one.
fn are_consecutive(slices: &[&[i64]], base: i64) -> bool {
    let mut first = base;
    slices.iter().all(|slice| {
        // Wrapping: behind i64::MAX nothing is consecutive, and the difference is not the row.
        let consecutive = slice.iter().zip(0i64..).all(|(id, row)| id.wrapping_sub(first) == row && *id >= base);
        first = first.wrapping_add(slice.len() as i64);
        consecutive
    })
}

fn number_range(slices: &[&[i64]], base: i64, len: usize, count: usize) -> Result<Form, DuplicateTask> {
    let mut row_of = vec![NONE; len];
    let mut twice: Option<i64> = None;
    for (row, id) in slices.iter().flat_map(|slice| slice.iter()).enumerate() {
        let slot = &mut row_of[id.wrapping_sub(base) as usize];
        if *slot != NONE {
            twice = Some(twice.map_or(*id, |earlier| earlier.min(*id)));
        }
        *slot = row as u32;
    }
    if let Some(id) = twice {
        return Err(DuplicateTask(id));
    }
    let present = (len > count).then(|| {
        let mut bits = vec![0u64; len.div_ceil(64)];
        for (slot, _) in row_of.iter().enumerate().filter(|(_, row)| **row != NONE) {
            bits[slot / 64] |= 1 << (slot % 64);
        }
        bits
    });
    Ok(Form::Range { base, len, row_of: Some(row_of), present })
}

fn number_sorted(slices: &[&[i64]], count: usize) -> Result<Form, DuplicateTask> {
    let mut pairs: Vec<(i64, u32)> = Vec::with_capacity(count);
    pairs.extend(slices.iter().flat_map(|slice| slice.iter()).zip(0u32..).map(|(id, row)| (*id, row)));
    pairs.sort_unstable();
    if let Some(twins) = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(DuplicateTask(twins[0].0));
    }
    let (ids, row_of): (Vec<i64>, Vec<u32>) = pairs.into_iter().unzip();
    // About one id per bucket when ids are spread evenly; a clump is searched in halves.
    let span = ids.last().zip(ids.first()).map_or(0, |(last, first)| last.abs_diff(*first));
    let mut shift = 0;
    while span >> shift > 2 * ids.len() as u64 {
        shift += 1;
    }
    let buckets = (span >> shift) as usize + 1;
    let mut starts = vec![0u32; buckets + 1];
    for id in &ids {
        starts[(id.abs_diff(ids[0]) >> shift) as usize + 1] += 1;
    }
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    Ok(Form::Sorted { ids, row_of, shift, starts })
}

#[inline]
fn bit(bits: &[u64], place: usize) -> bool {
    bits[place / 64] >> (place % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    #[test]
    fn no_tasks() {
        let ids = TaskIds::number(&[]).unwrap();
        assert_eq!((ids.slots(), ids.index(0), ids.index(i64::MIN)), (0, None, None));
    }

    #[test]
    fn extreme_ids() {
        let ids = TaskIds::number(&[&[i64::MAX, 0, i64::MIN]]).unwrap();
        assert_eq!([i64::MIN, 0, i64::MAX, 1, -1].map(|id| ids.index(id)), [Some(0), Some(1), Some(2), None, None]);
        assert_eq!([0, 1, 2].map(|index| ids.row(index)), [Some(2), Some(1), Some(0)]);
        let last = TaskIds::number(&[&[i64::MAX - 1], &[i64::MAX]]).unwrap();
        assert_eq!([i64::MAX - 1, i64::MAX, i64::MIN].map(|id| last.index(id)), [Some(0), Some(1), None]);
        assert_eq!(last.dense_base(), Some(i64::MAX - 1));
        let around = TaskIds::number(&[&[i64::MAX], &[i64::MIN]]).unwrap();
        assert_eq!([i64::MIN, i64::MAX].map(|id| around.index(id)), [Some(0), Some(1)]);
    }

    #[test]
    fn a_task_that_is_there_twice() {
        for twice in [&[7, 8, 7][..], &[1 << 50, 3, 3, 1 << 50], &[5, 5]] {
            let smallest = twice.iter().filter(|id| twice.iter().filter(|other| other == id).count() > 1).min();
            assert_eq!(TaskIds::number(&[twice]).unwrap_err(), DuplicateTask(*smallest.unwrap()));
        }
    }

    proptest! {
        /// An index is the rank of the id (in a range: its distance to the smallest), whatever form was chosen.
        #[test]
        fn every_id_is_found_and_no_other(
            ids in prop_oneof![btree_set(-40..40i64, 0..60), btree_set(-4000..4000i64, 0..20), btree_set(any::<i64>(), 0..20)],
            cut in vec(0..20usize, 0..4), reversed in any::<bool>(), others in vec(-50..50i64, 20),
        ) {
            let mut rows: Vec<i64> = ids.iter().copied().collect();
            if reversed { rows.reverse(); }
            let mut rest = &rows[..];
            let mut slices = vec![];
            for cut in cut {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                slices.push(head);
                rest = tail;
            }
            slices.push(rest);
            let numbered = TaskIds::number(&slices).unwrap();
            let mut before = None;
            for id in &ids {
                let index = numbered.index(*id).unwrap();
                prop_assert!(before < Some(index));
                before = Some(index);
                prop_assert_eq!(numbered.id(index), *id);
                prop_assert_eq!(rows[numbered.row(index).unwrap() as usize], *id);
            }
            for other in others {
                prop_assert_eq!(numbered.index(other).is_some(), ids.contains(&other));
            }
        }
    }
}
