//! The short, seeded form of `fuzz/`: mutations of the fixtures go through the same function as the fuzzer's inputs. What
//! the fuzzer found stands in the second half, one case each.

use std::path::Path;

use tq_engine::importers::examine::examine;
use tq_tests::fixture;

const SEED: u64 = 0x7175_6572_7921;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        start..start + self.below((length - start).min(200) + 1)
    }
}

/// The quoted words of a fuzzer's dictionary that need no unescaping beyond `\"` and `\\`.
fn words(format: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fuzz/{format}.dict"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let words = text.lines().filter(|line| !line.contains("\\x"));
    words.map(|line| line[1..line.len() - 1].replace("\\\"", "\"").replace("\\\\", "\\").into_bytes()).collect()
}

fn mutated(random: &mut Random, seeds: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(5) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.splice(at..at, words[random.below(words.len())].iter().copied())),
            2 => drop(bytes.drain(random.range(bytes.len()))),
            3 => {
                let again = bytes[random.range(bytes.len())].to_vec();
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let other = &seeds[random.below(seeds.len())];
                let piece = other[random.range(other.len())].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            5 if !bytes.is_empty() => bytes[at] = b"\"\\{}[],:0-.e"[random.below(12)],
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn mutations_are_answers_or_errors(format: &str, rounds: usize) {
    let mut seeds = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(fixture(format))
        .expect("fixtures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() < 8192))
        .collect();
    paths.sort();
    for path in paths {
        seeds.push(std::fs::read(path).expect("readable"));
    }
    let words = words(format);
    let mut random = Random(SEED);
    for round in 0..rounds {
        let bytes = mutated(&mut random, &seeds, &words);
        let faults = examine(format, &bytes);
        let text = String::from_utf8_lossy(&bytes);
        assert!(faults.is_empty(), "{format}, seed {SEED:#x}, round {round}: {faults:#?}\n{text}");
    }
}

#[test]
fn mutated_chrome_traces() {
    mutations_are_answers_or_errors("chrome", 3_000);
}

#[test]
fn mutated_taskflow_profiles() {
    mutations_are_answers_or_errors("tfprof", 3_000);
}

#[test]
fn mutated_folded_stacks() {
    mutations_are_answers_or_errors("folded", 1_500);
}

#[test]
fn mutated_tables() {
    mutations_are_answers_or_errors("table", 1_500);
}

// What the fuzzer found.

/// `"args"` that is no object made `tasks.args` a number.
#[test]
fn arguments_that_are_no_object() {
    for args in ["1617", "[1,{\"a\":2}]", "\"text\"", "null", "true", "NaN"] {
        let text = format!(r#"[{{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{args}}}]"#);
        assert_eq!(examine("chrome", text.as_bytes()), Vec::<String>::new(), "{text}");
    }
}
