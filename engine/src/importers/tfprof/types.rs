//! Task types: the words that Taskflow has for them, and the numbers that the binary dumps write instead.
//!
//! The numbers of T0 files changed between releases without any mark in the file, so [`Numbering::guess`] looks at which
//! numbers occur and which of them enclose tasks of the next level.

/// The type words of all releases. Codes of JSON and TFPX tasks are indices into this list.
pub(super) const WORDS: [&str; 11] = [
    "placeholder",
    "static",
    "subflow",
    "condition",
    "module",
    "async",
    "cudaflow",
    "syclflow",
    "multi_condition",
    "runtime",
    UNDEFINED,
];

/// The word for numbers that no release knows.
pub(super) const UNDEFINED: &str = "undefined";

/// The code of [`UNDEFINED`].
pub(super) const UNDEFINED_CODE: i32 = 10;

/// The code of a type word.
pub(super) fn code(word: &[u8]) -> Option<i32> {
    // In the order of how often traces hold them; a match on slices compares lengths first.
    Some(match word {
        b"static" => 1,
        b"subflow" => 2,
        b"condition" => 3,
        b"module" => 4,
        b"async" => 5,
        b"runtime" => 9,
        b"cudaflow" => 6,
        b"syclflow" => 7,
        b"multi_condition" => 8,
        b"placeholder" => 0,
        b"undefined" => UNDEFINED_CODE,
        _ => return None,
    })
}

/// The length of the longest type word.
pub(super) const WORD_MAX: usize = 15;

/// TFPX writes the types 0 to 4.
pub(super) const TFPX: [&str; 5] = ["static", "subflow", "condition", "module", "async"];

/// Which numbers stand for which types in a T0 file: named after the first release that wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    V3_0,
    V3_1,
    V3_3,
    V3_5,
    V3_6,
    V3_9,
}

impl Numbering {
    const ALL: [Numbering; 6] =
        [Numbering::V3_0, Numbering::V3_1, Numbering::V3_3, Numbering::V3_5, Numbering::V3_6, Numbering::V3_9];

    /// The value of `tfprof.types`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Numbering::V3_0 => "3.0",
            Numbering::V3_1 => "3.1",
            Numbering::V3_3 => "3.3",
            Numbering::V3_5 => "3.5",
            Numbering::V3_6 => "3.6",
            Numbering::V3_9 => "3.9",
        }
    }

    /// The numbering of that name.
    pub(super) fn from_name(name: &str) -> Option<Numbering> {
        Numbering::ALL.into_iter().find(|numbering| numbering.name() == name)
    }

    /// The words by number.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Numbering::V3_0 => {
                &["placeholder", "cudaflow", "static", "subflow", "condition", "module", "async", UNDEFINED]
            }
            Numbering::V3_1 => {
                &["placeholder", "cudaflow", "syclflow", "static", "subflow", "condition", "module", "async", UNDEFINED]
            }
            Numbering::V3_3 => &[
                "placeholder",
                "cudaflow",
                "syclflow",
                "static",
                "subflow",
                "condition",
                "multi_condition",
                "module",
                "async",
                "runtime",
                UNDEFINED,
            ],
            Numbering::V3_5 => &[
                "placeholder",
                "cudaflow",
                "syclflow",
                "static",
                "subflow",
                "condition",
                "module",
                "async",
                "runtime",
                UNDEFINED,
            ],
            Numbering::V3_6 => &["placeholder", "static", "subflow", "condition", "module", "async", UNDEFINED],
            Numbering::V3_9 => {
                &["placeholder", "static", "runtime", "subflow", "condition", "module", "async", UNDEFINED]
            }
        }
    }

    /// The likely numbering. `occurs` has bit `n` set when a task has number `n`, `encloses` when such a task has a task
    /// of the next level inside. Only subflow and module tasks nest, apart from corun, and CUDA flows are rare.
    ///
    /// Known to fail where the file cannot tell: nothing but subflows without nesting (3 of 3.9 reads as static of 3.5),
    /// and 1 with 3 but no 2 (a condition of 3.6 reads as subflow of 3.9).
    pub(super) fn guess(occurs: u64, encloses: u64) -> Numbering {
        let occurs = |number: u32| occurs & (1 << number) != 0;
        let encloses = |number: u32| encloses & (1 << number) != 0;
        if occurs(9) {
            Numbering::V3_3
        } else if occurs(1) {
            if occurs(6) || encloses(3) {
                Numbering::V3_9
            } else if encloses(4) || encloses(2) {
                Numbering::V3_6
            } else {
                Numbering::V3_9
            }
        } else if occurs(2) {
            if encloses(2) { Numbering::V3_6 } else { Numbering::V3_0 }
        } else if encloses(7) {
            Numbering::V3_3
        } else if encloses(3) {
            Numbering::V3_9
        } else {
            Numbering::V3_5
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_indices_of_words() {
        for (index, word) in WORDS.iter().enumerate() {
            assert_eq!(code(word.as_bytes()), Some(index as i32), "{word}");
            assert!(word.len() <= WORD_MAX);
        }
        assert_eq!(code(b"statics"), None);
    }

    #[test]
    fn guesses_follow_the_decision_list() {
        let bits = |numbers: &[u32]| numbers.iter().fold(0, |bits, number| bits | 1 << number);
        let check = |occurs: &[u32], encloses: &[u32], expected| {
            assert_eq!(Numbering::guess(bits(occurs), bits(encloses)), expected, "{occurs:?} {encloses:?}");
        };
        check(&[3, 9], &[], Numbering::V3_3);
        check(&[1, 6], &[], Numbering::V3_9);
        check(&[1, 3], &[3], Numbering::V3_9);
        check(&[1, 2, 4], &[4], Numbering::V3_6);
        check(&[1, 4], &[], Numbering::V3_9);
        check(&[2, 5], &[2], Numbering::V3_6);
        check(&[2, 5], &[5], Numbering::V3_0);
        check(&[3, 7], &[7], Numbering::V3_3);
        check(&[3], &[3], Numbering::V3_9);
        check(&[3, 5], &[], Numbering::V3_5);
    }

    #[test]
    fn names_of_numberings_round_trip() {
        for numbering in Numbering::ALL {
            assert_eq!(Numbering::from_name(numbering.name()), Some(numbering));
        }
        assert_eq!(Numbering::from_name("4.0"), None);
    }
}
