//! Reports of Nsight Systems: a script of the name `nsys` stands for NVIDIA's program.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Answer, Place};

const COUNT: [&str; 4] = ["query", "run.nsys-rep", "-c", "SELECT count(*) AS tasks FROM tasks"];

/// A place with a report, and the folder `programs` with an `nsys` that makes a database of whatever it is given.
fn place() -> (Place, PathBuf) {
    let place = Place::new();
    std::fs::write(place.0.path().join("run.nsys-rep"), b"\x01\0\x02what only NVIDIA reads").unwrap();
    let database = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/nsys/two_streams.sqlite");
    // nsys export --type sqlite --force-overwrite true --output DATABASE REPORT
    let script = format!("#!/bin/sh\n: > ran\n[ -f \"$8\" ] && /bin/cp '{}' \"$7\"\n", database.display());
    place.write("programs/nsys", &script);
    let folder = place.0.path().join("programs");
    std::fs::set_permissions(folder.join("nsys"), std::fs::Permissions::from_mode(0o755)).unwrap();
    (place, folder)
}

fn with_path(place: &Place, arguments: &[&str], path: &OsString) -> Answer {
    place.run_with(arguments, "", &[("PATH", path)])
}

#[test]
fn a_report_is_exported_by_nsys_and_tq_says_so() {
    let (place, folder) = place();
    let answer = with_path(&place, &COUNT, &folder.clone().into_os_string());
    let direct = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/nsys/two_streams.sqlite");
    let expected = place.tq_args(&["query", direct.to_str().unwrap(), "-c", COUNT[3]]);
    assert_eq!((answer.status, &answer.stdout), (Some(0), &expected.stdout), "{}", answer.stderr);
    let nsys = folder.join("nsys");
    assert!(answer.stderr.contains(&format!("{} export", nsys.display())), "{}", answer.stderr);
    assert!(place.0.path().join("ran").exists());
}

#[test]
fn nsys_is_not_run_when_it_is_forbidden_or_lies_in_an_untrusted_folder() {
    let (place, folder) = place();
    let forbidden = [&COUNT[..], &["--option", "nsys=no"]].concat();
    std::fs::copy(folder.join("nsys"), place.0.path().join("nsys")).unwrap();
    for (arguments, path) in [
        (&forbidden[..], folder.into_os_string()),
        (&COUNT[..], OsString::from(".")),
        (&COUNT[..], OsString::from("/nonexistent::programs")),
        (&COUNT[..], OsString::new()),
    ] {
        let answer = with_path(&place, arguments, &path);
        assert_eq!(answer.status, Some(2), "{path:?}: {}", answer.stderr);
        assert!(answer.stderr.contains("nsys export --type sqlite"), "{path:?}: {}", answer.stderr);
        assert!(!place.0.path().join("ran").exists(), "{path:?}");
    }
}
