//! The table of words that have numbers, which the operators of a GROUP BY of words share ([`super::numbered`]).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{Array, StringArray};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};

/// The share of all memory that the table of words may take: the rest is for groups, which spill.
const SHARE: usize = 8;

/// The words that have numbers.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<Known>);

#[derive(Debug, Default)]
pub(super) struct Known {
    text: String,
    /// By number: where the word stands in `text`.
    places: HashMap<i64, (usize, usize), BuildHasherDefault<Itself>>,
    memory: Option<MemoryReservation>,
    /// A word has no number.
    pub(super) has_given_up: bool,
}

/// Numbers are hashes already.
#[derive(Default)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_i64(&mut self, number: i64) {
        self.0 = number as u64;
    }
}

/// The number of a word that was not looked up yet.
pub(super) const UNSEEN: i64 = i64::MIN;

/// The number of a word: the same in all threads and runs.
pub(super) fn number(word: &str) -> i64 {
    (BuildHasherDefault::<DefaultHasher>::default().hash_one(word) as i64).max(UNSEEN + 1)
}

impl Table {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        // A word is there or it is not, whatever its finder did next.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Gives the memory of words back that nobody will ask for.
    pub(super) fn forget(&mut self) {
        *self = Known { has_given_up: self.has_given_up, ..Known::default() };
    }

    /// Whether the number is this word's, which it is from then on where it was free.
    pub(super) fn is_of(&mut self, number: i64, word: &str, context: &TaskContext) -> bool {
        let is_of = match self.places.get(&number) {
            Some(&(from, to)) => self.text.get(from..to) == Some(word),
            None => self.add(number, word, context),
        };
        self.has_given_up |= !is_of;
        is_of
    }

    fn add(&mut self, number: i64, word: &str, context: &TaskContext) -> bool {
        /// Of a place in the table, with what a table leaves free.
        const OF_PLACE: usize = 2 * size_of::<(i64, (usize, usize))>();
        let pool = context.memory_pool();
        let memory = self.memory.get_or_insert_with(|| MemoryConsumer::new("the words of GROUP BY").register(pool));
        let most = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => limit / SHARE,
            _ => usize::MAX,
        };
        let more = word.len() + OF_PLACE;
        if memory.size() + more > most || memory.try_grow(more).is_err() {
            return false;
        }
        let from = self.text.len();
        self.text.push_str(word);
        self.places.insert(number, (from, self.text.len()));
        true
    }

    pub(super) fn word(&self, number: i64) -> Result<&str> {
        let place = self.places.get(&number).and_then(|&(from, to)| self.text.get(from..to));
        place.ok_or_else(|| internal_datafusion_err!("a group has the number of no word"))
    }
}

/// Whether two arrays are of the same memory: a reader of Parquet makes an array anew for each batch of one dictionary.
pub(super) fn are_same(one: &StringArray, other: &StringArray) -> bool {
    one.len() == other.len()
        && one.value_offsets().as_ptr() == other.value_offsets().as_ptr()
        && one.value_data().as_ptr() == other.value_data().as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_the_first_word_that_has_it() {
        let context = TaskContext::default();
        let mut known = Known::default();
        assert!(known.is_of(7, "one", &context));
        assert!(!known.is_of(7, "two", &context));
        assert!(known.is_of(7, "one", &context));
        assert_eq!(known.word(7).unwrap(), "one");
        assert!(known.word(8).is_err());
        assert!(known.has_given_up);
    }
}
