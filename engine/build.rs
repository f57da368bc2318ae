//! Lists the files of `queries/`, so that the binary carries them: `[(name, include_str!(path)), …]` by name.

use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../queries");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry of queries/").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| (path.file_stem().expect("a stem").to_string_lossy().into_owned(), path))
        .collect();
    files.sort();
    let lines: Vec<String> = files.iter().map(|(name, path)| format!("({name:?}, include_str!({path:?}))")).collect();
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("built_in_queries.rs");
    fs::write(target, format!("&[{}]", lines.join(",\n"))).expect("OUT_DIR can be written");
}
