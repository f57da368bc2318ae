//! Colours for names: the names with the most time get a hue each, the others share a grey.
//!
//! The hue is derived from the name, so that it is the same in the next picture and for another run: each name has a preferred
//! hue, and takes the next free one if that is taken. Within a page, a name keeps its hue ([`Hues`]), and no other name gets it as long as
//! a picture can be read without: marks with labels may be grey ([`Need`]).
//!
//! Hues are Paul Tol's *bright* and *vibrant* schemes, which people with any colour vision can tell apart, extended by a violet and
//! a brown, and by a pale form of each for further names; each has a variant for dark backgrounds, and dark or light letters for
//! text on it.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use tq_engine::tables::runs_nothing;

/// The number of names with a hue of their own.
pub(super) const HUES: usize = COLOURS.len();
/// The class of marks whose colour tells nothing.
pub(super) const PLAIN: usize = HUES + 1;
/// Hues for the largest names; their pale forms follow.
const STRONG: usize = HUES / 2;

/// Fill on light paper, fill on dark paper, whether letters on each are dark.
const COLOURS: [(&str, &str, [bool; 2]); 20] = [
    ("#4477aa", "#6699cc", [false, true]),
    ("#ee6677", "#f0808f", [true, true]),
    ("#228833", "#3fa652", [false, true]),
    ("#ccbb44", "#d6c75c", [true, true]),
    ("#66ccee", "#66ccee", [true, true]),
    ("#aa3377", "#cc6699", [false, true]),
    ("#ee7733", "#f0935c", [true, true]),
    ("#009988", "#33b3a6", [true, true]),
    ("#7755bb", "#a48be0", [false, true]),
    ("#8c5a2b", "#b98a5e", [false, true]),
    ("#a9c3de", "#3f6390", [true, false]),
    ("#f7bcc3", "#9c4a58", [true, false]),
    ("#9fd3a8", "#2c6b38", [true, false]),
    ("#ebe2ad", "#8a7f36", [true, false]),
    ("#c3ebf8", "#3a7f96", [true, false]),
    ("#dca6c6", "#7d3a60", [true, false]),
    ("#f8cbad", "#9c5a30", [true, false]),
    ("#93d5cc", "#1f736a", [true, false]),
    ("#c9bbe8", "#5d4a94", [true, false]),
    ("#cdb294", "#74512f", [true, false]),
];
const OTHER: (&str, &str, [bool; 2]) = ("#a5abb3", "#6e7681", [true, false]);
const NEUTRAL: (&str, &str, [bool; 2]) = ("#3d4f8f", "#a9b8f0", [false, true]);

/// The hues: fill on light paper, fill on dark paper, whether letters on each are dark.
pub(crate) fn hues() -> impl Iterator<Item = (&'static str, &'static str, [bool; 2])> {
    COLOURS.into_iter()
}

/// What the hue of a name would tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Nothing of what the program does: a wait, or a step that holds all that runs meanwhile.
    Nothing,
    /// What a device runs, and its copies.
    Kernel,
    /// Other work.
    Work,
}

impl Tells {
    /// What the role, the kind and the name of a task tell.
    pub(crate) fn of(role: &str, kind: &str, name: &str) -> Tells {
        match kind {
            _ if runs_nothing(Some(role), Some(kind), Some(name)) => Tells::Nothing,
            "kernel" => Tells::Kernel,
            _ if role == "copy" => Tells::Kernel,
            _ => Tells::Work,
        }
    }
}

/// Totals by which names get hues: waits and steps come last, and kernels together count as much as all other work where they ran
/// for less. Threads are often recorded in many layers, and the kernels that they launch are what should be told apart.
pub(crate) fn totals_of_work(totals: &[i128], tells: &[Tells]) -> Vec<i128> {
    let sum =
        |of: Tells| totals.iter().zip(tells).filter(|(_, tells)| **tells == of).map(|(total, _)| total).sum::<i128>();
    let (kernels, work) = (sum(Tells::Kernel), sum(Tells::Work));
    let weighed = |(total, tells): (&i128, &Tells)| match tells {
        Tells::Nothing => 0,
        Tells::Kernel if 0 < kernels && kernels < work => total.saturating_mul(work) / kernels,
        Tells::Kernel | Tells::Work => *total,
    };
    totals.iter().zip(tells).map(weighed).collect()
}

/// What a picture needs hues for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Its marks are told apart by hue alone, and a paler one means less: the strong hues.
    Strong,
    /// Its marks are told apart by hue alone.
    Any,
    /// Its marks have labels: a hue that another name of the page has would mislead.
    Labelled,
}

/// The hues of a page: which name has which.
#[derive(Debug, Default)]
pub(crate) struct Hues {
    by_name: HashMap<String, usize>,
}

impl Hues {
    /// The hue of a name that has one.
    pub(super) fn hue_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The class number of each name: its hue when it has one on this page, or is among the largest (ties by name), else [`HUES`].
    /// `totals` has a name and its time per entry.
    pub(super) fn assign(&mut self, totals: &[(&str, i128)], need: Need) -> Vec<usize> {
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_by(|&a, &b| totals[b].1.cmp(&totals[a].1).then_with(|| totals[a].0.cmp(totals[b].0)));
        let mut classes = vec![HUES; totals.len()];
        let mut taken = [false; HUES];
        for &index in &order {
            if let Some(&hue) = self.by_name.get(totals[index].0)
                && !std::mem::replace(&mut taken[hue], true)
            {
                classes[index] = hue;
            }
        }
        let all: i128 = totals.iter().map(|(_, total)| total).sum();
        // What is hardly there needs no colour to be found by.
        let is_small = |index: usize| totals[index].1.saturating_mul(100) < all;
        order.retain(|&index| !self.by_name.contains_key(totals[index].0));
        // A legend would say 0.0 % of it.
        let is_nothing = |index: usize| totals[index].1.saturating_mul(2_000) < all;
        let is_dropped = |index: usize| if need == Need::Any { is_nothing(index) } else { is_small(index) };
        if order.iter().any(|&index| !is_dropped(index)) {
            order.retain(|&index| !is_dropped(index));
        }
        let of_page: Vec<bool> = (0..HUES).map(|hue| self.by_name.values().any(|known| *known == hue)).collect();
        let is_free = |hue: usize, taken: &[bool]| !taken[hue] && (need != Need::Labelled || !of_page[hue]);
        let free = |hues: Range<usize>| hues.filter(|&hue| is_free(hue, &taken)).count();
        let (strong, pale) = (free(0..STRONG), if need == Need::Strong { 0 } else { free(STRONG..HUES) });
        let (largest, others) = order.split_at(strong.min(order.len()));
        let others: Vec<usize> = others.iter().copied().filter(|&index| !is_small(index)).take(pale).collect();
        for (bank, names) in [(0, largest), (STRONG, others.as_slice())] {
            // The same names have the same hues, whichever of them is larger.
            let mut names = names.to_vec();
            names.sort_by_key(|&index| totals[index].0);
            for index in names {
                let preferred = preferred(totals[index].0);
                let all = (preferred..preferred + STRONG).map(|hue| bank + hue % STRONG);
                let hues = all.filter(|hue| is_free(*hue, &taken));
                // Better one that no other name of the page has.
                if let Some(hue) = hues.clone().find(|hue| !of_page[*hue]).or_else(|| hues.clone().next()) {
                    taken[hue] = true;
                    classes[index] = hue;
                    self.by_name.insert(totals[index].0.to_owned(), hue);
                }
            }
        }
        classes
    }
}

/// The hue of a name where none of the others has it: FNV-1a, which no release changes.
fn preferred(name: &str) -> usize {
    const BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let hash = name.bytes().fold(BASIS, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME));
    // The low bits alone know little of the first letters.
    ((hash ^ (hash >> 16)) % STRONG as u32) as usize
}

/// The classes: `f0`… fill, `s0`… stroke, `t0`… letters that stand on it.
pub(super) fn style() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    for (index, (on_light, on_dark, dark_letters)) in COLOURS.iter().chain([&OTHER, &NEUTRAL]).enumerate() {
        let [letters, letters_on_dark] = dark_letters.map(|dark| if dark { "#0d1117" } else { "#ffffff" });
        let _ = write!(
            light,
            ".f{index}{{fill:{on_light}}}.s{index}{{stroke:{on_light};fill:none}}.t{index}{{fill:{letters}}}"
        );
        let _ =
            write!(dark, ".f{index}{{fill:{on_dark}}}.s{index}{{stroke:{on_dark}}}.t{index}{{fill:{letters_on_dark}}}");
    }
    format!("{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize, total: impl Fn(usize) -> i128) -> Vec<(String, i128)> {
        (0..count).map(|n| (format!("n{n}"), total(n))).collect()
    }

    fn classes(hues: &mut Hues, totals: &[(String, i128)], need: Need) -> Vec<usize> {
        hues.assign(&totals.iter().map(|(name, total)| (name.as_str(), *total)).collect::<Vec<_>>(), need)
    }

    #[test]
    fn the_longest_names_get_hues_and_ties_go_by_name() {
        let totals = names(30, |n| if n == 7 { 100 } else { 5 });
        let found = classes(&mut Hues::default(), &totals, Need::Any);
        let mut hues: Vec<usize> = found.iter().copied().filter(|class| *class < HUES).collect();
        hues.sort_unstable();
        assert_eq!(hues, (0..HUES).collect::<Vec<_>>());
        assert!(found[7] < STRONG);
        // Little has no hue beside much, and where paler means less, no pale one.
        let little = classes(&mut Hues::default(), &names(30, |n| if n < 3 { 1_000 } else { 1 }), Need::Labelled);
        assert!(little[3..].iter().all(|class| *class == HUES));
        let strong = classes(&mut Hues::default(), &totals, Need::Strong);
        assert_eq!(strong.iter().filter(|class| **class < STRONG).count(), STRONG);
        assert!(strong.iter().all(|class| *class < STRONG || *class == HUES));
    }

    #[test]
    fn marks_with_labels_get_no_hue_that_another_name_has() {
        let mut page = Hues::default();
        let first = classes(&mut page, &names(8, |_| 1), Need::Strong);
        let others: Vec<(String, i128)> = (0..40).map(|n| (format!("m{n}"), 1)).collect();
        let second = classes(&mut page, &others, Need::Labelled);
        assert!(second.iter().all(|class| *class == HUES || !first.contains(class)));
        assert_eq!(second.iter().filter(|class| **class < HUES).count(), HUES - 8);
        let third: Vec<(String, i128)> = (0..3).map(|n| (format!("k{n}"), 1)).collect();
        assert_eq!(classes(&mut page, &third, Need::Labelled), [HUES; 3]);
        assert!(classes(&mut page, &third, Need::Any).iter().all(|class| *class < HUES));
    }

    #[test]
    fn kernels_count_as_much_as_other_work_and_waits_nothing() {
        let tells = [
            ("wait", "cuda_runtime", "sync"),
            ("work", "kernel", "gemm"),
            ("work", "kernel", "relu"),
            ("work", "cpu_op", "mm"),
        ]
        .map(|(role, kind, name)| Tells::of(role, kind, name));
        assert_eq!(totals_of_work(&[900, 3, 1, 40], &tells), [0, 30, 10, 40]);
        assert_eq!(Tells::of("work", "user_annotation", "ProfilerStep#3"), Tells::Nothing);
        assert_eq!(totals_of_work(&[5, 7], &[Tells::Work, Tells::Nothing]), [5, 0]);
    }

    #[test]
    fn a_name_keeps_its_hue_when_others_grow() {
        let run = |gemm, send| Hues::default().assign(&[("gemm", gemm), ("send", send), ("init", 3)], Need::Any);
        assert_eq!(run(10, 1), run(1, 10));
        let alone = Hues::default().assign(&[("gemm", 1)], Need::Any)[0];
        assert_eq!(alone, preferred("gemm"));
    }

    #[test]
    fn a_name_has_one_hue_on_a_page() {
        let mut page = Hues::default();
        let first = classes(&mut page, &names(12, |n| n as i128 + 1), Need::Any);
        // In the next picture others are much larger.
        let mut totals = names(3, |_| 1_000);
        totals.extend((0..40).map(|n| (format!("m{n}"), 1_000)));
        let second = classes(&mut page, &totals, Need::Any);
        assert_eq!(first[..3], second[..3]);
        let mut hues: Vec<usize> = second.iter().copied().filter(|class| *class < HUES).collect();
        hues.sort_unstable();
        hues.dedup();
        assert_eq!(hues.len(), second.iter().filter(|class| **class < HUES).count(), "no two share a hue");
    }
}
