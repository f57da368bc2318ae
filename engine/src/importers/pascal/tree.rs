//! The nesting of regions by their line numbers, for the shapes that do not record it.
//!
//! ```text
//! whole program   0 ------------------------------ 9999      or 0 - 0
//! a.c                   10 ---------- 20
//! a.c                           15 -- 20                     inside of 10 - 20
//! b.c                             16 - 18                    another file: in the whole program only
//! ```
//! As in PaScal Viewer, regions are taken by descending length (in file order where lengths are equal), and the parent is
//! the nearest earlier one that contains the lines, bounds included. Unlike there, a parent is in the same file, and
//! children are not mixed up when the input is not sorted by length.

use super::study::Region;

/// Whether lines mean the whole program.
pub(super) fn is_whole((first, last): (i64, i64)) -> bool {
    first == 0 && (last == 0 || last == 9999)
}

/// The two line numbers of a text such as `12, 14`, and whether it is written so.
pub(super) fn lines(text: &str) -> Option<((i64, i64), bool)> {
    if let Some((first, last)) = text.split_once(", ")
        && let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse())
    {
        return Some(((first, last), true));
    }
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let lines = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    // Words beside the two numbers are a name, and more numbers something else.
    let is_plain = text.bytes().all(|byte| !byte.is_ascii_alphabetic());
    (numbers.next().is_none() && is_plain).then_some((lines, false))
}

/// Gives every region its parent. `whole` is the place of the whole program, if it was measured.
pub(super) fn nest(regions: &mut [Region], whole: Option<usize>) {
    let mut order: Vec<(usize, i64, i64)> = regions
        .iter()
        .enumerate()
        .filter(|(place, _)| Some(*place) != whole)
        .filter_map(|(place, region)| region.lines.map(|(first, last)| (place, first, last)))
        .collect();
    order.sort_by_key(|(_, first, last)| std::cmp::Reverse(last.saturating_sub(*first)));
    for (at, &(place, first, last)) in order.iter().enumerate() {
        let around = order[..at]
            .iter()
            .rev()
            .find(|&&(other, from, to)| from <= first && last <= to && regions[other].file == regions[place].file);
        regions[place].parent = around.map(|around| around.0);
    }
    for (place, region) in regions.iter_mut().enumerate() {
        if Some(place) != whole && region.parent.is_none() {
            region.parent = whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_the_shortest_longer_regions_of_the_file() {
        let region = |file: &str, first, last| Region {
            lines: Some((first, last)),
            file: Some(file.to_owned()),
            ..Region::default()
        };
        // Not sorted by length, and the whole program somewhere.
        let mut regions = vec![
            region("a.c", 15, 20),
            region("a.c", 10, 20),
            region("", 0, 9999),
            region("b.c", 16, 18),
            region("a.c", 15, 20),
            region("a.c", 5, 7),
        ];
        nest(&mut regions, Some(2));
        let parents: Vec<_> = regions.iter().map(|region| region.parent).collect();
        assert_eq!(parents, [Some(1), Some(2), None, Some(2), Some(0), Some(2)]);
    }

    #[test]
    fn line_ranges_are_read_as_written_and_otherwise() {
        assert_eq!(lines("12, 14"), Some(((12, 14), true)));
        assert_eq!(lines("0-0"), Some(((0, 0), false)));
        assert_eq!(lines("12,14"), Some(((12, 14), false)));
        for other in ["main", "1", "1, 2, 3", "loop 1 to 2", ""] {
            assert_eq!(lines(other), None, "{other}");
        }
    }
}
