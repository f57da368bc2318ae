//! Where tests find their traces.

use std::path::{Path, PathBuf};

/// A file or folder of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name)
}

/// A file or folder of the large collection of recordings and answers, which is no part of the repository: `TQ_SHARED`, else
/// `../shared` beside the checkout. `None` when it is not there; the test then says that it skips.
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TQ_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    skip(&path);
    None
}

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn skip(path: &Path) {
    eprintln!("skipped: {} is not there (TQ_SHARED names the collection)", path.display());
}
