//! A sorted multiset, in which moving window frames find the least and the greatest of their current values.

use std::collections::BTreeMap;

/// Values with how often each is there. Everything is O(log n).
#[derive(Debug)]
pub(crate) struct Multiset<K> {
    copies: BTreeMap<K, u64>,
}

impl<K> Default for Multiset<K> {
    fn default() -> Self {
        Multiset { copies: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Multiset<K> {
    pub(crate) fn add(&mut self, value: K) {
        *self.copies.entry(value).or_insert(0) += 1;
    }

    /// Takes one copy away; a value that is not there changes nothing.
    pub(crate) fn remove(&mut self, value: K) {
        if let Some(copies) = self.copies.get_mut(&value) {
            *copies -= 1;
            if *copies == 0 {
                self.copies.remove(&value);
            }
        }
    }

    pub(crate) fn first(&self) -> Option<K> {
        self.copies.first_key_value().map(|(&value, _)| value)
    }

    pub(crate) fn last(&self) -> Option<K> {
        self.copies.last_key_value().map(|(&value, _)| value)
    }

    /// The values in order, each with its number of copies.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, u64)> + Clone + '_ {
        self.copies.iter().map(|(&value, &copies)| (value, copies))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        // The standard library fills its nodes by two thirds or more.
        self.copies.len() * size_of::<(K, u64)>() * 3 / 2
    }
}
