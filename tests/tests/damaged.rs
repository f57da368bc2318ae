//! The short, seeded form of `fuzz/`: beginnings and mutations of the fixtures go through the same function as the fuzzer's inputs. What
//! the fuzzer found stands in the second half, one case each.
//!
//! `TQ_FUZZ_ROUNDS=100000 cargo test --workspace --test all damaged` is the search for others. A round begins with its own seed:
//! `TQ_FUZZ_FIRST=4711` goes on from there, or repeats it. `TQ_FUZZ_SEEDS=DIRECTORY` writes down what the mutations begin with.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::NamedTempFile;
use tq_engine::importers::examine::examine;
use tq_engine::queries::library;
use tq_engine::trace::Source;
use tq_tests::{Random, fixture};

/// The words of a fuzzer's dictionary.
fn words(target: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fuzz/{target}.dict"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let word = |line: &str| {
        let quoted = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let quoted = quoted.unwrap_or_else(|| panic!("{}: `{line}` is no text in quotes", path.display()));
        let (mut word, mut rest) = (Vec::new(), quoted.as_bytes());
        while let [first, behind @ ..] = rest {
            let (byte, length) = match behind {
                [b'x', digits @ ..] if *first == b'\\' => {
                    let digits = std::str::from_utf8(&digits[..2]).expect("digits");
                    (u8::from_str_radix(digits, 16).expect("two digits"), 4)
                }
                [escaped, ..] if *first == b'\\' => (*escaped, 2),
                _ => (*first, 1),
            };
            word.push(byte);
            rest = &rest[length..];
        }
        word
    };
    text.lines().map(word).collect()
}

/// All files below a folder, as readers see them, up to a size.
fn files(folder: &Path, most: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path, most));
        } else if let Some(bytes) = Source::open(&path, None).ok().map(|source| source.read_all().expect("a fixture")) {
            found.extend((bytes.len() <= most).then_some((path, bytes)));
        }
    }
    found
}

/// Larger fixtures are no seeds: most mutations would fall into the same few kinds of bytes.
const SEED_BYTES: usize = 8192;

/// What a target's mutations begin with.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let of = |format: &str, most: usize| files(&fixture(format), most).into_iter().map(|(_, bytes)| bytes);
    let ptt = || of("parsec", usize::MAX).filter(|bytes| bytes.starts_with(b"\x89HDF"));
    match target {
        "actorprof" => {
            let directory = |folder| {
                let mut bytes = Vec::new();
                for (path, content) in files(&fixture(folder), SEED_BYTES) {
                    let name = path.file_name().expect("a name").to_string_lossy();
                    bytes.extend([format!("=== {name}\n").as_bytes(), &content, b"\n"].concat());
                }
                bytes
            };
            ["actorprof/quirks", "actorprof/triangle_range"].map(directory).to_vec()
        }
        "daisen" => of(target, 1 << 20)
            .map(|bytes| if bytes.starts_with(b"SQLite") { bytes } else { bytes[..6000].to_vec() })
            .collect(),
        "parsec" => of(target, 120_000).collect(),
        "ptt" => ptt().collect(),
        "pickle" => {
            // Protocol 5 begins with the length of its frame.
            let framed = |bytes: &[u8]| {
                let length = bytes.strip_prefix(b"\x80\x05\x95")?.first_chunk().copied().map(u64::from_le_bytes)?;
                Some(bytes.get(..11 + length as usize)?.to_vec())
            };
            let whole: Vec<u8> = ptt().next().expect("a fixture");
            (0..whole.len()).filter_map(|at| framed(&whole[at..])).collect()
        }
        "query" => library::built_in_names().map(|name| library::built_in(name).expect("built in").into()).collect(),
        "nsys" => of(target, 1 << 20).collect(),
        _ => of(target, SEED_BYTES).collect(),
    }
}

/// What rows of strangers may hold.
const ODD: &[&str] = &[
    "NULL",
    "0",
    "-1",
    "1",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
    "1e300",
    "-0.5",
    "9e999",
    "''",
    "'a'",
    "x'ff00'",
    "'12'",
    "'9223372036854775808'",
];

/// A database in which a few statements of a stranger ran. Those that fail change nothing.
fn with_odd_rows(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("room");
    let database = Connection::open(file.path()).expect("a fixture");
    let names = |sql: &str| -> Vec<String> {
        let mut names = database.prepare(sql).expect("SQL");
        names.query_map([], |row| row.get(0)).expect("rows").map(|name| name.expect("a name")).collect()
    };
    let _ = database.pragma_update(None, "synchronous", "off");
    for _ in 0..=random.below(6) {
        let tables = names("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
        let table = random.of(&tables);
        let columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let (column, value) = (random.of(&columns), random.of(ODD));
        let some = format!("WHERE rowid % {} = 0", 1 + random.below(20));
        let few = format!("WHERE rowid % {} = 0", 5 + random.below(20));
        let _ = database.execute_batch(&match random.below(12) {
            0 => format!("ALTER TABLE \"{table}\" DROP COLUMN \"{column}\""),
            1 => format!("DROP TABLE \"{table}\""),
            2 => format!("DELETE FROM \"{table}\" {some}"),
            3 => format!("INSERT INTO \"{table}\" SELECT * FROM \"{table}\" {few}"),
            4 => format!("ALTER TABLE \"{table}\" RENAME COLUMN \"{column}\" TO \"{column}_\""),
            5 => format!("UPDATE \"{table}\" SET \"{column}\" = \"{}\" {some}", random.of(&columns)),
            6 => format!("UPDATE \"{table}\" SET \"{column}\" = CAST(\"{column}\" AS TEXT) {some}"),
            _ => format!("UPDATE \"{table}\" SET \"{column}\" = {value} {some}"),
        });
    }
    drop(database);
    std::fs::read(file.path()).expect("readable")
}

/// Changes bytes where they are: in formats of blocks and offsets nothing is left of a file from which one is missing.
fn overwrite(random: &mut Random, bytes: &mut Vec<u8>, words: &[Vec<u8>]) {
    // Much of such a file is room that was never used.
    let places: Vec<usize> = (0..20).map(|_| random.below(bytes.len())).collect();
    let at = places.iter().copied().find(|at| bytes[*at] != 0).unwrap_or(places[0]);
    let (from, room) = (random.below(bytes.len()), bytes.len() - at);
    let to = from + room.min(64).min(bytes.len() - from);
    match random.below(20) {
        0 => bytes.truncate(at),
        1 => bytes[at..at + room.min(200)].fill(0),
        2..4 => bytes.copy_within(from..to, at),
        4..9 => {
            let word = random.of(words);
            let length = word.len().min(room);
            bytes[at..at + length].copy_from_slice(&word[..length]);
        }
        9..12 => bytes[at] = random.below(256) as u8,
        _ => bytes[at] ^= 1 << random.below(8),
    }
}

fn mutated(random: &mut Random, seeds: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.of(seeds).clone();
    let is_database = bytes.starts_with(b"SQLite");
    if is_database && random.below(4) > 0 {
        return with_odd_rows(random, &bytes);
    }
    let is_of_blocks = is_database || bytes.len() > 8192;
    for _ in 0..=random.below(5) {
        if is_of_blocks && !bytes.is_empty() {
            overwrite(random, &mut bytes, words);
            continue;
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.splice(at..at, random.of(words).iter().copied())),
            2 => drop(bytes.drain(random.range(bytes.len()))),
            3 => {
                let again = bytes[random.range(bytes.len())].to_vec();
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let other = random.of(seeds);
                let piece = other[random.range(other.len())].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            5 if !bytes.is_empty() => bytes[at] = *random.of(b"\"\\{}[],:0-.e"),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn mutations_are_answers_or_errors(target: &str, rounds: u64) {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let (first, rounds) = (given("TQ_FUZZ_FIRST").unwrap_or(0), given("TQ_FUZZ_ROUNDS").unwrap_or(rounds));
    let (seeds, words) = (seeds(target), words(target));
    if let Some(folder) = std::env::var_os("TQ_FUZZ_SEEDS").map(|folder| Path::new(&folder).join(target)) {
        std::fs::create_dir_all(&folder).expect("a folder of seeds");
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(number.to_string()), seed).expect("room");
        }
    }
    let check = |bytes: &[u8], what: &dyn Fn() -> String| {
        let faults = catch_unwind(|| examine(target, bytes)).unwrap_or_else(|_| vec!["a panic".to_owned()]);
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(8192)]);
        assert!(faults.is_empty(), "{target}, {}: {faults:#?}\n{text}", what());
    };
    for (number, seed) in seeds.iter().enumerate().filter(|_| first == 0) {
        for length in (0..seed.len()).step_by(seed.len() / 30 + 1) {
            check(&seed[..length], &|| format!("seed {number} cut at {length}"));
        }
    }
    for round in first..first + rounds {
        let bytes = mutated(&mut Random::new(round << 20), &seeds, &words);
        check(&bytes, &|| format!("TQ_FUZZ_FIRST={round}"));
    }
}

#[test]
fn mutated_actorprof_directories() {
    mutations_are_answers_or_errors("actorprof", 100);
}

#[test]
fn mutated_chrome_traces() {
    mutations_are_answers_or_errors("chrome", 1_500);
}

#[test]
fn mutated_daisen_databases() {
    mutations_are_answers_or_errors("daisen", 40);
}

#[test]
fn mutated_nsys_databases() {
    mutations_are_answers_or_errors("nsys", 200);
}

#[test]
fn mutated_parsec_profiles_and_graphs() {
    mutations_are_answers_or_errors("parsec", 300);
}

#[test]
fn mutated_pascal_studies() {
    mutations_are_answers_or_errors("pascal", 1_000);
}

#[cfg(feature = "hdf5")]
#[test]
fn mutated_pickles() {
    mutations_are_answers_or_errors("pickle", 3_000);
}

#[cfg(feature = "hdf5")]
#[test]
fn mutated_ptt_files() {
    mutations_are_answers_or_errors("ptt", 20);
}

#[test]
fn mutated_saved_queries() {
    mutations_are_answers_or_errors("query", 200);
}

#[test]
fn mutated_folded_stacks() {
    mutations_are_answers_or_errors("folded", 1_500);
}

#[test]
fn mutated_tables() {
    mutations_are_answers_or_errors("table", 1_500);
}

#[test]
fn mutated_taskflow_profiles() {
    mutations_are_answers_or_errors("tfprof", 1_500);
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

/// DataFusion asked for the type of the first column of none.
#[test]
fn subqueries_without_a_column() {
    for value in [
        "(SELECT FROM runs)",
        "1 IN (SELECT FROM runs)",
        "(SELECT * FROM (SELECT FROM runs)) + 1",
        "1 = ANY((SELECT FROM runs))",
    ] {
        for sql in [format!("SELECT {value}"), format!("SELECT 1 FROM tasks WHERE {value}")] {
            assert_eq!(examine("query", sql.as_bytes()), Vec::<String>::new(), "{sql}");
        }
    }
}
