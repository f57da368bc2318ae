//! The code base keeps its own promises: what belongs where, documented functions, licences of the dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::execution::FunctionRegistry;
use datafusion::prelude::SessionContext;
use tq_engine::importers::importers;
use tq_udfs::ticks::Tick;

/// (where, what must not appear there, what to use instead)
const LEFT_TO_OTHERS: &[(&str, &str, &str)] = &[
    ("udfs/src", "std::fs", "arguments: functions do no I/O, the engine does"),
    ("udfs/src", "std::time::SystemTime", "an argument: functions ask no clock"),
    ("udfs/src", "println!", "a note or an error: only the cli prints"),
    ("udfs/src", "tq_engine", "nothing: dependencies point one way, cli -> engine -> udfs"),
    ("engine/src", "println!", "import_stats rows or notes: only the cli prints"),
    ("engine/src", "process::exit", "an error: only the cli exits"),
    ("engine/src", "tq_cli", "nothing: dependencies point one way, cli -> engine -> udfs"),
    ("python/src", "tq_engine", "tq_cli::embedded: dependencies point one way, python -> cli -> engine -> udfs"),
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

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace root")
}

/// All `.rs` files of the workspace's own folders.
pub(crate) fn sources() -> Vec<PathBuf> {
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
    for folder in ["udfs", "engine", "cli", "tests", "benches", "fuzz", "python"] {
        collect(&root().join(folder), &mut found);
    }
    found.sort();
    assert!(found.len() > 10, "the walk finds the sources");
    found
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The lines of a file with their numbers, without the items under `#[cfg(test)]`: they may do what the code must not.
pub(crate) fn without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut lines = text.lines().enumerate();
    let mut code = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            code.push((number + 1, line));
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end =
            |line: &str| line.strip_prefix(indent).is_some_and(|rest| matches!(rest, "}" | "};" | ");" | "];"));
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
                #[cfg(test)]\nmod more {\n    g\n}\nh\n#[cfg(test)]\nconst I: [u8; 1] = [\n    1,\n];\nj\n";
    let kept: Vec<(usize, &str)> = without_tests(text);
    assert_eq!(kept, [(1, "a"), (4, "b"), (5, "impl C {"), (11, "    f"), (12, "}"), (17, "h"), (22, "j")]);
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
        if metadata.len() > 100 << 10 && !name.starts_with("fixtures/") && !name.ends_with("Cargo.lock") {
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

/// A dependency that no source file of its crate names is built for nothing, and one that only its tests name is no dependency
/// of those who use the crate.
#[test]
fn dependencies_are_used() {
    let mut faults = Vec::new();
    let mut of_members = BTreeSet::new();
    for folder in ["udfs", "engine", "cli", "tests", "benches", "fuzz", "python"] {
        let of_folder = root().join(folder);
        let is_test = |path: &Path| folder != "tests" && path.starts_with(of_folder.join("tests"));
        let (mut code, mut all) = (BTreeSet::new(), BTreeSet::new());
        for path in sources().iter().filter(|path| path.starts_with(&of_folder)) {
            let text = read(path);
            let is_test = is_test(path) || path.file_name().is_some_and(|name| name == "tests.rs");
            let lines = if is_test { Vec::new() } else { without_tests(&text) };
            code.extend(lines.iter().flat_map(|(_, line)| words(line)));
            all.extend(text.lines().flat_map(words));
        }
        for (list, name) in dependencies(&read(&of_folder.join("Cargo.toml"))) {
            let word = name.replace('-', "_");
            // For its features alone.
            if name.starts_with("unified-") {
                of_members.insert(name);
                continue;
            }
            if !all.contains(&word) {
                faults.push(format!("{folder}/Cargo.toml: nothing in {folder} names `{word}`"));
            } else if list == "dependencies" && !code.contains(&word) {
                faults.push(format!("{folder}/Cargo.toml: only tests name `{word}` -> use dev-dependencies"));
            }
            of_members.insert(name);
        }
    }
    for (_, name) in dependencies(&read(&root().join("Cargo.toml"))) {
        if !of_members.contains(&name) {
            faults.push(format!("Cargo.toml: no member depends on `{name}`"));
        }
    }
    report(&faults);
}

/// The package for Python has a lock file of its own, and shares what is compiled with the workspace where the versions are the same.
#[test]
fn python_has_the_versions_of_the_workspace() {
    let versions = |file: &str| -> BTreeSet<(String, String)> {
        let text = read(&root().join(file));
        let package = |package: &str| {
            let value = |key: &str| {
                let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
                line.unwrap_or_default().trim_matches('"').to_owned()
            };
            (value("name"), value("version"))
        };
        text.split("[[package]]").skip(1).map(package).collect()
    };
    let (ours, theirs) = (versions("Cargo.lock"), versions("python/Cargo.lock"));
    let is_shared = |name: &String| ours.iter().any(|(ours, _)| ours == name);
    let differs = |package: &&(String, String)| is_shared(&package.0) && !ours.contains(*package);
    let faults: Vec<String> = theirs
        .iter()
        .filter(differs)
        .map(|(name, version)| {
            let asked = "cargo update --manifest-path python/Cargo.toml --precise";
            format!("python/Cargo.lock: {name} {version} is another one in Cargo.lock -> {asked} VERSION {name}")
        })
        .collect();
    assert!(theirs.iter().filter(|(name, _)| is_shared(name)).count() > 100);
    report(&faults);
}

/// The lists of a manifest and what stands in each.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let (mut list, mut found) = (None, Vec::new());
    for line in manifest.lines() {
        if let Some(heading) = line.strip_prefix('[') {
            let last = heading.trim_end_matches(']').rsplit('.').next().unwrap_or_default();
            list = last.ends_with("dependencies").then_some(last);
        } else if let (Some(list), Some((name, _))) = (list, line.split_once(['.', ' ', '=']))
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        {
            found.push((list.to_owned(), name.to_owned()));
        }
    }
    found
}

/// The identifiers of a line, without its comment.
fn words(line: &str) -> impl Iterator<Item = String> {
    let code = line.split("//").next().unwrap_or_default();
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned)
}

/// What a format needs beside its reader, and what a fuzz target needs beside its few lines.
#[test]
fn formats_have_fixtures_tests_and_fuzz_targets() {
    let [damaged, manifest, fixtures, docs, all] =
        ["tests/tests/damaged.rs", "fuzz/Cargo.toml", "fixtures/README.md", "docs/formats.md", "tests/tests/all.rs"]
            .map(|path| read(&root().join(path)));
    let mut wanted: Vec<(String, bool)> = Vec::new();
    let mut targets: BTreeSet<String> = BTreeSet::new();
    for importer in importers() {
        let name = importer.doc().name;
        targets.insert(name.to_owned());
        let has_files = std::fs::read_dir(root().join("fixtures").join(name)).is_ok_and(|entries| entries.count() > 0);
        wanted.push((format!("fixtures/{name}/ with a trace"), has_files));
        wanted.push((format!("`## {name}` in fixtures/README.md"), fixtures.contains(&format!("\n## {name}\n"))));
        let page = "docs/formats.md (`UPDATE_EXPECT=1 cargo test --workspace --test docs` writes it)";
        wanted.push((format!("`## {name}` in {page}"), docs.contains(&format!("\n## {name}\n"))));
        let tests = format!("tests/tests/import_{name}.rs");
        wanted.push((tests.clone(), root().join(&tests).exists()));
        wanted.push((
            format!("`mod import_{name};` in tests/tests/all.rs"),
            all.contains(&format!("\nmod import_{name};\n")),
        ));
    }
    let files = std::fs::read_dir(root().join("fuzz/fuzz_targets")).expect("fuzz targets");
    targets.extend(
        files.map(|file| file.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned()),
    );
    for target in &targets {
        for path in [format!("fuzz/fuzz_targets/{target}.rs"), format!("fuzz/{target}.dict")] {
            wanted.push((path.clone(), root().join(path).exists()));
        }
        let seeded = damaged.contains(&format!("mutations_are_answers_or_errors(\"{target}\","));
        wanted.push((format!("the seeded form of `{target}` in tests/tests/damaged.rs"), seeded));
        wanted
            .push((format!("`{target}` in fuzz/Cargo.toml"), manifest.contains(&format!("fuzz_targets/{target}.rs"))));
    }
    let missing = wanted.into_iter().filter(|(_, is_there)| !is_there).map(|(what, _)| format!("missing: {what}"));
    report(&missing.collect::<Vec<_>>());
}

/// A function whose meaning no golden query states is half a function. That each is documented is a test of `udfs`.
#[test]
fn functions_have_golden_queries() {
    let golden = std::fs::read_dir(root().join("tests/slt")).expect("golden queries");
    let golden: String = golden.map(|file| read(&file.expect("a file").path())).collect();
    let state = SessionContext::new().state();
    let scalars = tq_udfs::scalar_functions(Tick::Nanosecond);
    let aggregates = tq_udfs::aggregate_functions(state.udaf("sum").expect("DataFusion's"));
    let (windows, relations) = (tq_udfs::window_functions(), tq_udfs::relation_functions());
    let names = scalars.iter().map(|function| function.name());
    let names = names.chain(aggregates.iter().map(|function| function.name()));
    let names = names.chain(windows.iter().map(|function| function.name()));
    let names = names.chain(relations.iter().map(|function| function.name()));
    // Arithmetic is asked for with its operators, in `checked_arithmetic.slt`.
    let is_written = |name: &&str| !name.starts_with("checked_");
    let without = names.filter(is_written).filter(|name| !golden.contains(&format!("{name}(")));
    report(&without.map(|name| format!("tests/slt: nothing asks `{name}(…)`")).collect::<Vec<_>>());
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
        // Unchanged, below fantoccini, and in no binary that is handed on.
        .filter(|package| !(package["name"] == "webdriver" && package["license"] == "MPL-2.0"))
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
