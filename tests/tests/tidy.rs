//! The code base keeps its own promises: what belongs where, documented functions, licences of the dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// (where, what must not appear there, what to use instead)
const LEFT_TO_OTHERS: &[(&str, &str, &str)] = &[
    ("udfs/src", "std::fs", "arguments: functions do no I/O, the engine does"),
    ("udfs/src", "std::time::SystemTime", "an argument: functions ask no clock"),
    ("udfs/src", "println!", "a note or an error: only the cli prints"),
    ("udfs/src", "tq_engine", "nothing: dependencies point one way, cli -> engine -> udfs"),
    ("engine/src", "println!", "import_stats rows or notes: only the cli prints"),
    ("engine/src", "process::exit", "an error: only the cli exits"),
    ("engine/src", "tq_cli", "nothing: dependencies point one way, cli -> engine -> udfs"),
    ("engine/src/importers", ".unwrap()", "an ImportError that names file and place"),
];

/// Marks of unfinished work; spelt in halves so that this file does not find itself.
const UNFINISHED: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("db", "g!("), concat!("to", "do!(")];

/// SPDX terms that the dependencies may be under; an OR needs one of them, an AND all.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace root")
}

/// All `.rs` files of the workspace's own folders.
fn sources() -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for folder in ["udfs", "engine", "cli", "tests", "benches", "fuzz"] {
        collect(&root().join(folder), &mut found);
    }
    found.sort();
    assert!(found.len() > 10, "the walk finds the sources");
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The lines of a file with their numbers, without the items under `#[cfg(test)]`: they may do what the code must not.
fn without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut lines = text.lines().enumerate();
    let mut code = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            code.push((number + 1, line));
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &str| line.strip_prefix(indent).is_some_and(|rest| matches!(rest, "}" | "};" | ");"));
        let Some((_, first)) = lines.by_ref().find(|(_, line)| !line.trim().starts_with("#[")) else { break };
        if !first.ends_with(';') && !first.ends_with('}') {
            lines.by_ref().find(|(_, line)| is_end(line));
        }
    }
    code
}

#[test]
fn code_behind_tests_is_looked_at() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\nimpl C {\n    #[cfg(test)]\n    #[x]\n    fn d() {\n        e\n    }\n    f\n}\n\
                #[cfg(test)]\nmod more {\n    g\n}\nh\n";
    let kept: Vec<(usize, &str)> = without_tests(text);
    assert_eq!(kept, [(1, "a"), (4, "b"), (5, "impl C {"), (11, "    f"), (12, "}"), (17, "h")]);
}

#[test]
fn what_belongs_elsewhere_stays_there() {
    let mut faults = Vec::new();
    for path in sources() {
        let text = read(&path);
        let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        for (number, line) in without_tests(&text) {
            let line = line.split("//").next().unwrap_or_default();
            for (folder, word, instead) in LEFT_TO_OTHERS {
                if relative.starts_with(folder) && line.contains(word) {
                    faults.push(format!("{relative}:{number}: `{word}` -> use {instead}"));
                }
            }
        }
        for (number, line) in text.lines().enumerate() {
            for word in UNFINISHED {
                if line.contains(word) {
                    faults.push(format!("{relative}:{}: `{word}` on main", number + 1));
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<String> = sources()
        .iter()
        .filter(|path| !read(path).starts_with("//!"))
        .map(|path| format!("{}: begins without `//!`", path.display()))
        .collect();
    report(&silent);
}

#[test]
fn files_stay_readable() {
    let long: Vec<String> = sources()
        .iter()
        .filter_map(|path| {
            let lines = read(path).lines().count();
            (lines > 900).then(|| format!("{}: {lines} lines; split it by what it does", path.display()))
        })
        .collect();
    report(&long);
}

#[test]
fn every_finding_is_made_somewhere() {
    let texts: Vec<String> =
        sources().iter().filter(|path| path.starts_with(root().join("engine/src"))).map(|path| read(path)).collect();
    let code: String =
        texts.iter().flat_map(|text| without_tests(text)).map(|(_, line)| line.to_owned() + "\n").collect();
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let used: BTreeSet<&str> =
        code.split("findings::").skip(1).filter_map(|rest| rest.split(|c| !is_letter(c)).next()).collect();
    let words = tq_engine::trace::findings::GROUPS.iter().flat_map(|group| group.findings).map(|finding| finding.what);
    let dead: Vec<String> = words
        .filter(|word| !used.contains(word.to_uppercase().as_str()))
        .map(|word| format!("findings.rs: nobody finds `{word}`"))
        .collect();
    report(&dead);
}

#[test]
fn blobs_live_in_fixtures_and_stay_small() {
    let listed = Command::new("git").arg("-C").arg(root()).args(["ls-files", "-z"]).output();
    let Ok(listed) = listed else { return eprintln!("skipped: no git on this machine") };
    if !listed.status.success() {
        return eprintln!("skipped: not a git checkout");
    }
    let mut faults = Vec::new();
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        let Ok(metadata) = std::fs::metadata(root().join(name)) else { continue };
        if metadata.len() > 100 << 10 && !name.starts_with("fixtures/") && name != "Cargo.lock" {
            faults.push(format!("{name}: {} bytes outside of fixtures/", metadata.len()));
        }
    }
    report(&faults);
}

#[test]
fn dependencies_point_one_way() {
    let manifest = |folder: &str| read(&root().join(folder).join("Cargo.toml"));
    for (folder, forbidden) in [("udfs", vec!["tq-engine", "tq-cli"]), ("engine", vec!["tq-cli"])] {
        let text = manifest(folder);
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
        for name in forbidden {
            assert!(!dependencies.contains(name), "{folder} depends on {name}");
        }
    }
    assert!(
        !manifest("udfs").contains("\ndatafusion.workspace"),
        "udfs needs only DataFusion's traits, not the whole of it"
    );
}

/// A dependency that no source file of its crate names is built for nothing.
#[test]
fn dependencies_are_used() {
    let mut faults = Vec::new();
    for folder in ["udfs", "engine", "cli", "tests", "benches", "fuzz"] {
        let manifest = read(&root().join(folder).join("Cargo.toml"));
        let of_folder = root().join(folder);
        let texts: Vec<String> =
            sources().iter().filter(|path| path.starts_with(&of_folder)).map(|path| read(path)).collect();
        let mut is_list = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                is_list = line.ends_with("dependencies]");
            }
            let Some((name, _)) =
                line.split_once(['.', ' ', '=']).filter(|(name, _)| is_list && !name.starts_with(['#', '[']))
            else {
                continue;
            };
            let word = name.replace('-', "_");
            let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
            let is_used = texts.iter().any(|text| {
                text.match_indices(&word).any(|(at, _)| {
                    let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
                    !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
                })
            });
            if !is_used {
                faults.push(format!("{folder}/Cargo.toml: nothing in {folder} names `{word}`"));
            }
        }
    }
    report(&faults);
}

#[test]
fn licences_of_all_dependencies_are_allowed() {
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).current_dir(root()).output().expect("cargo and rustc run")
    };
    let of_all_platforms = ["metadata", "--offline", "--locked", "--format-version", "1"];
    let mut output = run(env!("CARGO"), &of_all_platforms);
    if !output.status.success() {
        // A build downloads what this platform needs; the others' packages may not be here.
        let version = String::from_utf8(run("rustc", &["-vV"]).stdout).expect("UTF-8");
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
        output = run(env!("CARGO"), &[&of_all_platforms[..], &["--filter-platform", host]].concat());
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 100, "all packages are listed");
    let allowed: BTreeSet<&str> = LICENCES.iter().copied().collect();
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or_default(), &allowed))
        .map(|package| format!("{}: licence {}", package["name"], package["license"]))
        .collect();
    report(&refused);
}

/// Reads `A OR (B AND C)`, and the old spelling `A/B`.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    // A term of an AND stands for itself: with OR looser than AND, dropping parentheses only makes the test stricter
    // for `(A OR B) AND C`, which is read as `A OR (B AND C)` and then asked of every AND part.
    if expression.contains(") AND") || expression.contains("AND (") {
        return plain.split(" AND ").all(|part| part.split(" OR ").any(|term| allowed.contains(term.trim())));
    }
    plain.split(" OR ").any(|part| part.split(" AND ").all(|term| allowed.contains(term.trim())))
}

#[test]
fn licence_expressions_are_read() {
    let allowed = BTreeSet::from(["MIT", "Apache-2.0", "Unicode-3.0"]);
    assert!(is_allowed("MIT OR GPL-3.0", &allowed));
    assert!(is_allowed("MIT/Apache-2.0", &allowed));
    assert!(is_allowed("(MIT OR GPL-3.0) AND Unicode-3.0", &allowed));
    assert!(!is_allowed("MIT AND GPL-3.0", &allowed));
    assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0", &allowed));
    assert!(!is_allowed("", &allowed));
}
