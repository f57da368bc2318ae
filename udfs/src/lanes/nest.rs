//! Nesting: which task of a lane encloses which.
//!
//! ```text
//! a [---------------)      a encloses b and d, b encloses c
//! b   [-----)              d and e cross: e ends after d, so e is nobody's child and nobody is e's
//! c   [--)
//! d           [-----)
//! e              [-----)
//! ```
//!
//! A task encloses those that start no earlier and end no later. Touching is not enclosing: a task that starts where
//! another ends is its neighbour. Only two tasks without length at the same tick nest, in their order. One pass,
//! linear.

use crate::lanes::LaneSpan;

/// Where a task stands on its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<T> {
    /// Nothing encloses it.
    Top,
    /// The innermost task around it, as the caller called that one, and how many there are.
    Inside(T, usize),
    /// It starts inside of a task and ends after it: it has no parent, and nothing is inside of it.
    Across,
}

/// Walks over the tasks of a lane, sorted by [`crate::lanes::sort_lane`]. `visit` gets the place of each one and
/// returns the value that stands for it as the parent of others.
pub fn nest<T: Copy>(spans: &[LaneSpan], mut visit: impl FnMut(&LaneSpan, Place<T>) -> T) {
    let mut around = Around::default();
    for span in spans {
        around.enter(span, |place| visit(span, place));
    }
}

/// The tasks around the one at hand, the outermost first, with what stands for each of them.
#[derive(Debug)]
pub struct Around<T> {
    open: Vec<(LaneSpan, T)>,
}

impl<T> Default for Around<T> {
    fn default() -> Self {
        Around { open: vec![] }
    }
}

impl<T: Copy> Around<T> {
    /// The next task of the lane, as for [`nest`].
    pub fn enter(&mut self, span: &LaneSpan, visit: impl FnOnce(Place<T>) -> T) {
        while let Some((top, _)) = self.open.last() {
            let over = top.finish < span.start || (top.finish == span.start && !(top.is_empty() && span.is_empty()));
            if !over {
                break;
            }
            self.open.pop();
        }
        let place = match self.open.last() {
            None => Place::Top,
            Some((top, _)) if top.finish < span.finish => Place::Across,
            Some((_, parent)) => Place::Inside(*parent, self.open.len()),
        };
        let called = visit(place);
        if !matches!(place, Place::Across) {
            self.open.push((*span, called));
        }
    }

    /// What stands for each of them.
    pub fn names_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.open.iter_mut().map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::sort_lane;
    use crate::relation::rows::Ties;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    fn nested(spans: &[(i64, i64)]) -> Vec<Place<u32>> {
        let span = |(row, (start, finish)): (u32, &(i64, i64))| LaneSpan::new(*start, *finish, row);
        let mut lane: Vec<LaneSpan> = (0..).zip(spans).map(span).collect();
        sort_lane(&mut lane, &Ties::by_row());
        let mut places = vec![Place::Top; spans.len()];
        nest(&lane, |span, place| {
            places[span.row as usize] = place;
            span.row
        });
        places
    }

    #[test]
    fn the_picture_above() {
        let places = nested(&[(0, 8), (1, 4), (1, 2), (5, 8), (6, 9)]);
        assert_eq!(places, [Place::Top, Place::Inside(0, 1), Place::Inside(1, 2), Place::Inside(0, 1), Place::Across]);
    }

    #[test]
    fn touching_equal_and_empty() {
        use Place::{Inside, Top};
        assert_eq!(nested(&[(0, 4), (4, 8)]), [Top, Top]);
        assert_eq!(nested(&[(0, 4), (0, 4)]), [Top, Inside(0, 1)]);
        assert_eq!(nested(&[(4, 4), (0, 4)]), [Top, Top]);
        assert_eq!(nested(&[(4, 4), (4, 8)]), [Inside(1, 1), Top]);
        assert_eq!(nested(&[(4, 4), (4, 4)]), [Top, Inside(0, 1)]);
        assert_eq!(nested(&[(4, 4), (4, 4), (0, 4)]), [Top, Inside(0, 1), Top]);
        assert_eq!(nested(&[(i64::MIN, i64::MAX), (i64::MAX, i64::MAX)]), [Top, Top]);
    }

    proptest! {
        /// The definition without a stack: of all that came before in the order of nesting and do not cross anything,
        /// the last that is not over decides.
        #[test]
        fn equals_a_look_at_all_before(spans in vec((0..12i64, 0..6i64), 0..14)) {
            let spans: Vec<(i64, i64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            let mut order: Vec<usize> = (0..spans.len()).collect();
            order.sort_by_key(|at| (spans[*at].0, Reverse(spans[*at].1), *at));
            let places = nested(&spans);
            let is_empty = |at: usize| spans[at].0 == spans[at].1;
            for (number, at) in order.iter().enumerate() {
                let over = |other: usize| {
                    spans[other].1 < spans[*at].0
                        || (spans[other].1 == spans[*at].0 && !(is_empty(other) && is_empty(*at)))
                };
                let open: Vec<usize> = order[..number]
                    .iter()
                    .copied()
                    .filter(|other| places[*other] != Place::Across && !over(*other))
                    .collect();
                let expected = match open.last() {
                    None => Place::Top,
                    Some(top) if spans[*top].1 < spans[*at].1 => Place::Across,
                    Some(top) => Place::Inside(*top as u32, open.len()),
                };
                prop_assert_eq!(places[*at], expected);
            }
        }
    }
}
