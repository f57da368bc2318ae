//! Interning of words that repeat: each distinct text is stored once, rows hold Int32 keys.

use std::hash::BuildHasher;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::error::ArrowError;
use hashbrown::{DefaultHashBuilder, HashTable};

/// The dictionary of one column while it is built. Keys count from 0 in the order of first appearance, so that the same
/// trace gives the same dictionary on any number of cores when keys are interned in file order.
#[derive(Debug, Clone, Default)]
pub struct Words {
    text: String,
    /// Word `k` is `text[ends[k - 1]..ends[k]]`.
    ends: Vec<usize>,
    keys: HashTable<i32>,
    hasher: DefaultHashBuilder,
}

impl Words {
    /// The key of `word`, a new one when it was never seen.
    ///
    /// # Panics
    /// Beyond 2³¹ distinct words, which need more memory than any pool here grants.
    pub fn intern(&mut self, word: &str) -> i32 {
        let hash = self.hasher.hash_one(word);
        let (text, ends) = (&self.text, &self.ends);
        if let Some(&key) = self.keys.find(hash, |&key| slice(text, ends, key) == word) {
            return key;
        }
        let key = i32::try_from(self.ends.len()).expect("fewer than 2^31 distinct words");
        self.text.push_str(word);
        self.ends.push(self.text.len());
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.keys.insert_unique(hash, key, |&key| hasher.hash_one(slice(text, ends, key)));
        key
    }

    /// The key of `word`, if it was seen.
    pub fn find(&self, word: &str) -> Option<i32> {
        let hash = self.hasher.hash_one(word);
        self.keys.find(hash, |&key| slice(&self.text, &self.ends, key) == word).copied()
    }

    /// The word of a key that [`Words::intern`] returned.
    pub fn word(&self, key: i32) -> &str {
        slice(&self.text, &self.ends, key)
    }

    /// Number of distinct words.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no word was interned.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<usize>() + self.keys.allocation_size()
    }

    /// The values of the dictionary array: the text moves, so that it is never there twice.
    ///
    /// # Errors
    /// More text than an array of text can hold.
    pub fn into_values(self) -> Result<ArrayRef, ArrowError> {
        let Words { mut text, ends, keys, .. } = self;
        drop(keys);
        if i32::try_from(text.len()).is_err() {
            return Err(ArrowError::OffsetOverflowError(text.len()));
        }
        text.shrink_to_fit();
        let offsets: Vec<i32> = std::iter::once(0).chain(ends.iter().map(|end| *end as i32)).collect();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(text.into_bytes()), None)?))
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], key: i32) -> &'a str {
    let key = key as usize;
    let from = if key == 0 { 0 } else { ends[key - 1] };
    &text[from..ends[key]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::AsArray;

    #[test]
    fn keys_count_in_order_of_appearance() {
        let mut words = Words::default();
        let keys: Vec<i32> = ["b", "", "a", "b", "", "c"].iter().map(|word| words.intern(word)).collect();
        assert_eq!(keys, [0, 1, 2, 0, 1, 3]);
        assert_eq!((words.word(1), words.word(3), words.len()), ("", "c", 4));
        assert_eq!((words.find("a"), words.find("d")), (Some(2), None));
        let values = words.into_values().expect("little text");
        assert_eq!(values.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["b", "", "a", "c"]);
    }
}
