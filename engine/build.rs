//! Lists the files of `queries/`, so that the binary carries them: `[(name, include_str!(path)), …]` by name; and sums the sources up, so that
//! programs that help each other know whether they are of the same ones.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    list_queries(&manifest);
    let sources = ["src", "../udfs/src", "../Cargo.lock"].map(|path| manifest.join(path));
    let mut sum = FNV_OFFSET;
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        sum_up(source, &mut sum);
    }
    println!("cargo::rustc-env=TQ_SOURCES={:08x}", sum >> 32 ^ sum & 0xffff_ffff);
}

/// FNV-1a of 64 bits.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Adds the name and the content of a file, or of all files of a folder.
fn sum_up(path: &Path, sum: &mut u64) {
    let mut add = |bytes: &[u8]| bytes.iter().for_each(|byte| *sum = (*sum ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
    add(path.file_name().unwrap_or_default().as_encoded_bytes());
    // One that is not there is as good as empty.
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| sum_up(entry, sum));
    } else {
        add(&fs::read(path).unwrap_or_default());
    }
}

fn list_queries(manifest: &Path) {
    let folder = manifest.join("../queries");
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
