//! The open tasks of a thread or of an id, in the order in which they began: an end looks for the innermost one that
//! matches.
//!
//! ```text
//! f(io)  g(io)  f(db)  h(db)          an end of `f` fits the third, one of `f` in `io` the first, one without a name `h`
//! ```
//! Nearly all ends match one of the last few, so those are compared one by one. Only a search that goes deeper builds an index
//! by name and category, so that a stack on which nothing ever ends costs no more than its length.

use std::collections::HashMap;

/// Any name, any category.
pub(super) const ANY: i32 = -1;

/// How many are looked at one by one.
const SCANNED_MAX: usize = 16;

/// Begun tasks of a thread, or of an id.
#[derive(Debug)]
pub(super) struct Opened<T> {
    /// The last one is open.
    slots: Vec<Slot<T>>,
    /// Places by name and category, each also without one or both; those that were closed since stay until they are met.
    index: Option<Index<T>>,
}

impl<T> Default for Opened<T> {
    fn default() -> Opened<T> {
        Opened { slots: Vec::new(), index: None }
    }
}

/// A slot by its place, and what it had.
type Place<T> = (usize, T);

type Index<T> = HashMap<(i32, i32), Vec<Place<T>>>;

#[derive(Debug)]
struct Slot<T> {
    /// What the caller knows it by, given once.
    item: T,
    name: i32,
    category: i32,
    is_open: bool,
}

impl<T> Slot<T> {
    fn fits(&self, name: i32, category: i32) -> bool {
        self.is_open && (name == ANY || name == self.name) && (category == ANY || category == self.category)
    }
}

impl<T: Copy + PartialEq> Opened<T> {
    /// How deep the stack is, with those that were closed below others.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.index = None;
    }

    pub(super) fn push(&mut self, item: T, name: i32, category: i32) {
        if let Some(index) = &mut self.index {
            enter(index, self.slots.len(), item, name, category);
        }
        self.slots.push(Slot { item, name, category, is_open: true });
    }

    /// The innermost one that is open.
    pub(super) fn last(&self) -> Option<T> {
        self.slots.last().map(|slot| slot.item)
    }

    /// The place of the innermost one with this name and category, either of which may be [`ANY`].
    pub(super) fn innermost(&mut self, name: i32, category: i32) -> Option<usize> {
        let near = self.slots.iter().rev().take(SCANNED_MAX).position(|slot| slot.fits(name, category));
        if let Some(above) = near {
            return Some(self.slots.len() - 1 - above);
        }
        if self.slots.len() <= SCANNED_MAX {
            return None;
        }
        let slots = &self.slots;
        let index = self.index.get_or_insert_with(|| {
            let mut index = HashMap::new();
            for (place, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.is_open) {
                enter(&mut index, place, slot.item, slot.name, slot.category);
            }
            index
        });
        let places = index.get_mut(&(name, category))?;
        let is_there = |&(place, item): &Place<T>| {
            slots.get(place).is_some_and(|slot: &Slot<T>| slot.item == item && slot.is_open)
        };
        while !places.last().is_none_or(is_there) {
            places.pop();
        }
        places.last().map(|(place, _)| *place)
    }

    pub(super) fn item(&self, place: usize) -> T {
        self.slots[place].item
    }

    /// Closes the one at a place. Those above it stay open, and it keeps its place below them.
    pub(super) fn close(&mut self, place: usize) -> T {
        self.slots[place].is_open = false;
        let item = self.slots[place].item;
        self.trim();
        item
    }

    /// Takes everything from a place on off the stack: what of it is open, the outermost first.
    pub(super) fn take_from(&mut self, place: usize) -> Vec<T> {
        let taken = self.slots.drain(place.min(self.slots.len())..);
        let items = taken.filter(|slot| slot.is_open).map(|slot| slot.item).collect();
        self.trim();
        items
    }

    fn trim(&mut self) {
        while self.slots.last().is_some_and(|slot| !slot.is_open) {
            self.slots.pop();
        }
    }
}

fn enter<T: Copy>(index: &mut Index<T>, place: usize, item: T, name: i32, category: i32) {
    for key in [(name, category), (name, ANY), (ANY, category)] {
        index.entry(key).or_default().push((place, item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the module says, without an index.
    #[derive(Default)]
    struct Naive(Vec<(usize, i32, i32, bool)>);

    impl Naive {
        fn innermost(&self, name: i32, category: i32) -> Option<usize> {
            self.0.iter().rposition(|&(_, own, kind, open)| {
                open && (name == ANY || name == own) && (category == ANY || category == kind)
            })
        }
    }

    #[test]
    fn the_innermost_one_that_fits_is_found_at_any_depth() {
        let mut random = 7_u64;
        let mut below = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        let (mut opened, mut naive) = (Opened::default(), Naive::default());
        let mut deepest = 0;
        for item in 0..30_000 {
            let name = below(40) as i32;
            let category = below(3) as i32;
            // It grows deep, is cut, and grows again.
            match below(9) {
                0..=4 => {
                    opened.push(item, name, category);
                    naive.0.push((item, name, category, true));
                }
                _ => {
                    let (name, category) = if below(2) == 0 { (name, ANY) } else { (name, category) };
                    let place = opened.innermost(name, category);
                    assert_eq!(place, naive.innermost(name, category));
                    if let Some(place) = place {
                        assert_eq!(opened.close(place), naive.0[place].0);
                        naive.0[place].3 = false;
                        while naive.0.pop_if(|slot| !slot.3).is_some() {}
                    }
                }
            }
            deepest = deepest.max(opened.len());
            if below(3_000) == 0 {
                let half = opened.len() / 2;
                let taken = opened.take_from(half);
                let expected: Vec<usize> = naive.0.drain(half..).filter(|slot| slot.3).map(|slot| slot.0).collect();
                assert_eq!(taken, expected);
                while naive.0.pop_if(|slot| !slot.3).is_some() {}
            }
            assert_eq!(opened.last(), naive.0.last().map(|slot| slot.0));
        }
        assert!(deepest > 10 * SCANNED_MAX);
    }
}
