//! Cells: the values of one column for a chunk of rows that is about to enter a table, typed by what the column holds.
//!
//! A column is absent (NULL in each row), one value in all rows, or an array, whose buffers move on without a copy. The type
//! parameter says what the values are, so that words cannot be put into a column of times. The columns are defined in
//! [`crate::tables`].

use std::marker::PhantomData;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};

use crate::words::Words;

/// What a column holds, as types.
pub mod kind {
    /// A word that repeats: keys of the column's dictionary, or texts, which are interned.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Word;
    /// Free text.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Text;
    /// A whole number.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Integer;
    /// The position of a task or message within its run.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Identity;
    /// Ticks.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Time;
    /// A double.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Double;
}

use kind::{Double, Identity, Integer, Text, Time, Word};

/// The values of a column, whatever it holds.
#[derive(Debug, Default)]
pub enum Values {
    /// NULL in each row.
    #[default]
    Absent,
    /// The same word in every row.
    Word(String),
    /// The same key, number, position or time in every row.
    Same(i64),
    /// A value per row; keys of the column's dictionary are Int32.
    Each(ArrayRef),
    /// Keys of a dictionary of their own.
    Words(Words, Int32Array),
}

impl Values {
    /// How many rows there are, where a value stands for each.
    pub fn rows(&self) -> Option<usize> {
        match self {
            Values::Each(array) => Some(array.len()),
            Values::Words(_, keys) => Some(keys.len()),
            Values::Absent | Values::Word(_) | Values::Same(_) => None,
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        match self {
            Values::Each(array) => array.get_buffer_memory_size(),
            Values::Words(words, keys) => words.memory() + keys.get_buffer_memory_size(),
            Values::Absent | Values::Word(_) | Values::Same(_) => 0,
        }
    }
}

/// The values of a column of kind `K`; absent by default.
#[derive(Debug, Default)]
pub struct Cells<K> {
    values: Values,
    kind: PhantomData<K>,
}

impl<K> Cells<K> {
    fn of(values: Values) -> Cells<K> {
        Cells { values, kind: PhantomData }
    }

    /// The values without their kind.
    pub fn into_values(self) -> Values {
        self.values
    }
}

impl Cells<Word> {
    /// Keys of a dictionary of their own.
    pub fn of_words(words: Words, keys: impl Into<Int32Array>) -> Cells<Word> {
        Cells::of(Values::Words(words, keys.into()))
    }

    /// Keys: one for all rows where they are the same.
    pub fn one_or_many(keys: Vec<i32>) -> Cells<Word> {
        match keys.first() {
            Some(first) if keys.iter().all(|key| key == first) => (*first).into(),
            _ => keys.into(),
        }
    }
}

/// From arrays of this type.
macro_rules! from_array {
    ($kind:ty, $array:ty) => {
        impl From<$array> for Cells<$kind> {
            fn from(array: $array) -> Self {
                Cells::of(Values::Each(Arc::new(array)))
            }
        }
        impl From<Option<$array>> for Cells<$kind> {
            fn from(array: Option<$array>) -> Self {
                array.map_or_else(Cells::default, Cells::from)
            }
        }
    };
}

/// From values of this type and arrays of them.
macro_rules! from_values {
    ($($kind:ty: $array:ty, $value:ty;)*) => {$(
        from_array!($kind, $array);
        impl From<Vec<$value>> for Cells<$kind> {
            fn from(values: Vec<$value>) -> Self {
                <$array>::from(values).into()
            }
        }
        impl From<Vec<Option<$value>>> for Cells<$kind> {
            fn from(values: Vec<Option<$value>>) -> Self {
                <$array>::from(values).into()
            }
        }
        impl FromIterator<$value> for Cells<$kind> {
            fn from_iter<I: IntoIterator<Item = $value>>(values: I) -> Self {
                values.into_iter().collect::<Vec<_>>().into()
            }
        }
        impl FromIterator<Option<$value>> for Cells<$kind> {
            fn from_iter<I: IntoIterator<Item = Option<$value>>>(values: I) -> Self {
                values.into_iter().collect::<$array>().into()
            }
        }
    )*};
}

/// From texts.
macro_rules! from_texts {
    ($($text:ty),*) => {$(
        impl<'t> FromIterator<$text> for Cells<Text> {
            fn from_iter<I: IntoIterator<Item = $text>>(texts: I) -> Self {
                StringArray::from_iter_values(texts).into()
            }
        }
        impl<'t> FromIterator<Option<$text>> for Cells<Text> {
            fn from_iter<I: IntoIterator<Item = Option<$text>>>(texts: I) -> Self {
                texts.into_iter().collect::<StringArray>().into()
            }
        }
        impl<'t> FromIterator<$text> for Cells<Word> {
            fn from_iter<I: IntoIterator<Item = $text>>(texts: I) -> Self {
                texts.into_iter().map(Some).collect()
            }
        }
        impl<'t> FromIterator<Option<$text>> for Cells<Word> {
            fn from_iter<I: IntoIterator<Item = Option<$text>>>(texts: I) -> Self {
                // Each text once: columns of words may hold more text than an array of them can.
                let mut words = Words::default();
                let keys: Int32Array = texts.into_iter().map(|text| text.map(|text| words.intern(&text))).collect();
                Cells::of_words(words, keys)
            }
        }
    )*};
}

from_values! {
    Word: Int32Array, i32;
    Integer: Int64Array, i64;
    Identity: Int64Array, i64;
    Time: Int64Array, i64;
    Double: Float64Array, f64;
}
from_array!(Word, StringArray);
from_array!(Text, StringArray);
from_texts!(&'t str, String);

impl From<i32> for Cells<Word> {
    fn from(key: i32) -> Self {
        Cells::of(Values::Same(i64::from(key)))
    }
}

impl From<&str> for Cells<Word> {
    fn from(word: &str) -> Self {
        Cells::of(Values::Word(word.to_owned()))
    }
}

impl From<Option<&str>> for Cells<Word> {
    fn from(word: Option<&str>) -> Self {
        word.map_or_else(Cells::default, Cells::from)
    }
}

impl From<i64> for Cells<Integer> {
    fn from(value: i64) -> Self {
        Cells::of(Values::Same(value))
    }
}

impl From<i64> for Cells<Time> {
    fn from(time: i64) -> Self {
        Cells::of(Values::Same(time))
    }
}
