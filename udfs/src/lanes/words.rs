//! Words that repeat, as numbers: locations and names of tasks.
//!
//! A dictionary is read once, not once per batch and never once per row: batches of one table share it. Plain text is
//! hashed, unless it equals the text of the row before.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use datafusion_common::Result;
use datafusion_common::hash_utils::RandomState;

use crate::graph::NONE;

/// Numbers texts in the order in which they appear.
#[derive(Debug, Default)]
pub struct Words {
    numbers: HashMap<Arc<str>, u32, RandomState>,
    texts: Vec<Arc<str>>,
    text_bytes: usize,
}

/// What is remembered between the batches of one column: the number of each entry of its dictionary.
#[derive(Debug, Default)]
pub struct WordsReading {
    dictionary: Option<(ArrayRef, Vec<u32>)>,
}

/// Bytes that a word takes beside its text: in the table, in the list, and its own head.
const WORD_BYTES: usize = 64;

impl Words {
    /// How many words there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// About how many bytes are held.
    pub fn size(&self) -> usize {
        self.texts.len() * WORD_BYTES + self.text_bytes
    }

    /// The text of a number.
    pub fn text(&self, word: u32) -> &str {
        &self.texts[word as usize]
    }

    /// All words, each at its number.
    pub fn texts(&self) -> StringViewArray {
        StringViewArray::from_iter_values(&self.texts)
    }

    /// Appends the number of each value, [`NONE`] for NULL.
    pub fn number(&mut self, reading: &mut WordsReading, column: &ArrayRef, numbers: &mut Vec<u32>) -> Result<()> {
        if let DataType::Dictionary(keys, values) = column.data_type()
            && keys.as_ref() != &DataType::Int32
        {
            let same = cast(column, &DataType::Dictionary(Box::new(DataType::Int32), values.clone()))?;
            return self.number(reading, &same, numbers);
        }
        let Some(dictionary) = column.as_dictionary_opt::<Int32Type>() else {
            return self.number_texts(column, numbers);
        };
        let known = reading.dictionary.as_ref();
        if known.is_none_or(|(values, _)| !values.to_data().ptr_eq(&dictionary.values().to_data())) {
            let mut entries = Vec::with_capacity(dictionary.values().len());
            self.number_texts(dictionary.values(), &mut entries)?;
            reading.dictionary = Some((Arc::clone(dictionary.values()), entries));
        }
        let entries = reading.dictionary.as_ref().map_or(&[][..], |(_, entries)| entries);
        let keys = dictionary.keys();
        match keys.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => numbers.extend(keys.values().iter().map(|key| entries[*key as usize])),
            Some(_) => numbers.extend(keys.iter().map(|key| key.map_or(NONE, |key| entries[key as usize]))),
        }
        Ok(())
    }

    fn number_texts(&mut self, column: &ArrayRef, numbers: &mut Vec<u32>) -> Result<()> {
        let texts = cast(column, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        // Equal views of one array are equal texts.
        let mut before: Option<(u128, u32)> = None;
        for (row, view) in texts.views().iter().enumerate() {
            let number = match before {
                _ if texts.is_null(row) => NONE,
                Some((same, number)) if same == *view => number,
                _ => {
                    let number = self.number_text(texts.value(row));
                    before = Some((*view, number));
                    number
                }
            };
            numbers.push(number);
        }
        Ok(())
    }

    fn number_text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (text, number): (Arc<str>, u32) = (text.into(), self.texts.len() as u32);
        self.text_bytes += text.len();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, LargeStringArray, StringArray};
    use arrow::datatypes::UInt8Type;

    #[test]
    fn every_form_of_text_gets_the_same_numbers() {
        let long = "a location with a long name";
        let texts = [Some("w1"), Some("w1"), None, Some(long), Some("w0"), Some(long)];
        let columns: [ArrayRef; 5] = [
            Arc::new(StringArray::from_iter(texts)),
            Arc::new(LargeStringArray::from_iter(texts)),
            Arc::new(StringViewArray::from_iter(texts)),
            Arc::new(DictionaryArray::<Int32Type>::from_iter(texts)),
            Arc::new(DictionaryArray::<UInt8Type>::from_iter(texts)),
        ];
        let mut words = Words::default();
        for column in columns {
            let mut numbers = vec![];
            let mut reading = WordsReading::default();
            words.number(&mut reading, &column.slice(0, 4), &mut numbers).unwrap();
            words.number(&mut reading, &column.slice(4, 2), &mut numbers).unwrap();
            // The whole dictionary is numbered at its first batch, here in the order of its entries.
            assert_eq!(numbers, [0, 0, NONE, 1, 2, 1], "{}", column.data_type());
        }
        assert_eq!((words.len(), words.text(2)), (3, "w0"));
        assert_eq!(words.texts().value(1), long);
    }

    #[test]
    fn another_dictionary_has_other_keys() {
        let (mut words, mut reading, mut numbers) = (Words::default(), WordsReading::default(), vec![]);
        for text in ["a", "b", "a"] {
            let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::from_iter([Some(text)]));
            words.number(&mut reading, &column, &mut numbers).unwrap();
        }
        assert_eq!(numbers, [0, 1, 0]);
    }
}
