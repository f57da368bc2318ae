//! The nearest name: what a misspelt word probably was meant to be.

/// Bytes of a name that may be misspelt; longer ones are no slip, and comparing takes as long as both names multiplied.
const LONGEST_NAME: usize = 200;

/// The candidate that is most like `name`, if one is like it at all: at most a third of its letters differ (swapped
/// neighbours count once), or one is the beginning of the other. Case does not matter. Ties go to the first in alphabet.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let wanted = name.to_lowercase();
    let length = wanted.chars().count();
    let allowed = (length / 3).max(1);
    let ranked = candidates.into_iter().filter_map(|candidate| {
        let known = candidate.to_lowercase();
        let distance = strsim::osa_distance(&wanted, &known);
        let shares_beginning = length >= 3 && (known.starts_with(&wanted) || wanted.starts_with(&known));
        (distance <= allowed || (shares_beginning && known.chars().count() >= 3)).then_some((distance, candidate))
    });
    ranked.min().map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(nearest("strat", ["stack", "start"]), Some("start"));
    }
}
