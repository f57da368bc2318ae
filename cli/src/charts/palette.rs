//! Colours for names: the names with the most time get a hue each, the rest shares a grey.
//!
//! Which hue follows from the name, so that it is the same in the next picture and in that of another run: each name prefers one,
//! and takes the next free one where another name has it.
//!
//! Hues are Paul Tol's *bright* and *vibrant* schemes, which people with any colour vision can tell apart; each has a
//! lighter form for dark paper, and dark or light letters to stand on it.

use std::fmt::Write;

/// The number of names with a hue of their own.
pub(super) const HUES: usize = COLOURS.len();

/// Fill on light paper, fill on dark paper, whether letters on it are dark.
const COLOURS: [(&str, &str, bool); 8] = [
    ("#4477aa", "#6699cc", false),
    ("#ee6677", "#f0808f", false),
    ("#228833", "#3fa652", false),
    ("#ccbb44", "#d6c75c", true),
    ("#66ccee", "#66ccee", true),
    ("#aa3377", "#cc6699", false),
    ("#ee7733", "#f0935c", true),
    ("#009988", "#33b3a6", false),
];
const OTHER: (&str, &str, bool) = ("#a5abb3", "#6e7681", true);

/// The class number of each name: its hue when it is among the first [`HUES`] in the order of total time (ties by name), else
/// [`HUES`]. `totals` has a name and its time per entry.
pub(super) fn assign(totals: &[(&str, i128)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by(|&a, &b| totals[b].1.cmp(&totals[a].1).then_with(|| totals[a].0.cmp(totals[b].0)));
    order.truncate(HUES);
    // The same names have the same hues, whichever of them is larger.
    order.sort_by_key(|&index| totals[index].0);
    let mut classes = vec![HUES; totals.len()];
    let mut taken = [false; HUES];
    for index in order {
        let preferred = preferred(totals[index].0);
        let free = (preferred..preferred + HUES).map(|hue| hue % HUES).find(|hue| !taken[*hue]);
        if let Some(hue) = free {
            taken[hue] = true;
            classes[index] = hue;
        }
    }
    classes
}

/// The hue of a name where none of the others has it: FNV-1a, which no release changes.
fn preferred(name: &str) -> usize {
    const BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let hash = name.bytes().fold(BASIS, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME));
    // The low bits alone know little of the first letters.
    ((hash ^ (hash >> 16)) % HUES as u32) as usize
}

/// The classes: `f0`… fill, `s0`… stroke, `t0`… letters that stand on it.
pub(super) fn style() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    for (index, (on_light, on_dark, dark_letters)) in COLOURS.iter().chain([&OTHER]).enumerate() {
        let letters = if *dark_letters { "#1f2328" } else { "#ffffff" };
        let _ = write!(
            light,
            ".f{index}{{fill:{on_light}}}.s{index}{{stroke:{on_light};fill:none}}.t{index}{{fill:{letters}}}"
        );
        let _ = write!(dark, ".f{index}{{fill:{on_dark}}}.s{index}{{stroke:{on_dark}}}.t{index}{{fill:#0d1117}}");
    }
    format!("{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_get_hues_and_ties_go_by_name() {
        let totals: Vec<(String, i128)> = (0..10).map(|n| (format!("n{n}"), if n == 7 { 100 } else { 5 })).collect();
        let totals: Vec<(&str, i128)> = totals.iter().map(|(name, total)| (name.as_str(), *total)).collect();
        let classes = assign(&totals);
        assert_eq!(classes[8..], [HUES, HUES]);
        let mut hues = classes[..8].to_vec();
        hues.sort_unstable();
        assert_eq!(hues, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_name_keeps_its_hue_when_others_grow() {
        let run = |gemm, send| assign(&[("gemm", gemm), ("send", send), ("init", 3)]);
        assert_eq!(run(10, 1), run(1, 10));
        let alone = assign(&[("gemm", 1)])[0];
        assert_eq!(alone, preferred("gemm"));
    }
}
