//! The nearest name: what a misspelt word probably was meant to be.

/// Bytes of a name that may be misspelt; longer ones are no slip, and comparing takes as long as both names multiplied.
const LONGEST_NAME: usize = 200;

/// The candidate that is most like `name`, if one is like it at all: at most a third of its letters differ (swapped
/// neighbours count once), or one is the beginning of the other. Case does not matter. Ties go to the first in alphabet.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let allowed = (wanted.len() / 3).max(1);
    let ranked = candidates.into_iter().filter_map(|candidate| {
        let letters: Vec<char> = candidate.to_lowercase().chars().collect();
        let distance = edit_distance(&wanted, &letters);
        let shares_beginning = wanted.len() >= 3 && (letters.starts_with(&wanted) || wanted.starts_with(&letters));
        (distance <= allowed || (shares_beginning && letters.len() >= 3)).then_some((distance, candidate))
    });
    ranked.min().map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = vec![];
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other_letter) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != other_letter);
            let mut best = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && one[row - 1] == *other_letter && *letter == other[column - 1];
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let check = |one: &str, other: &str, expected| {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(edit_distance(&letters(one), &letters(other)), expected, "{one} {other}");
            assert_eq!(edit_distance(&letters(other), &letters(one)), expected, "{other} {one}");
        };
        check("", "", 0);
        check("", "abc", 3);
        check("start", "strat", 1);
        check("busy", "bussy", 1);
        check("busy", "buzy", 1);
        check("task", "links", 4);
        check("ab", "ba", 1);
        check("abcd", "badc", 2);
    }

    #[test]
    fn nearest_names() {
        let names = ["tasks", "links", "locations", "runs", "messages"];
        assert_eq!(nearest("task", names), Some("tasks"));
        assert_eq!(nearest("TASKZ", names), Some("tasks"));
        assert_eq!(nearest("lniks", names), Some("links"));
        assert_eq!(nearest("loc", names), Some("locations"));
        assert_eq!(nearest("run", names), Some("runs"));
        assert_eq!(nearest("x", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("weather", names), None);
        assert_eq!(nearest(&"tasks".repeat(100_000), names), None);
        assert_eq!(nearest("abd", ["abe", "abc"]), Some("abc"));
    }
}
