//! Beginnings of other tools' files, written by hand from the tools' sources and documentation.

use super::*;

fn source(bytes: &[u8]) -> Source {
    Source::of_bytes(bytes.to_vec()).expect("bytes")
}

fn named(name: &str, bytes: &[u8]) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("written");
    let source = Source::open(&path, None).expect("opened");
    (folder, source)
}

#[test]
fn beginnings_tell_their_maker() {
    let check = |bytes: &[u8], expected: &str| {
        let what = identify(&source(bytes)).map(|foreign| foreign.what).unwrap_or_default();
        assert!(what.contains(expected), "{}: {what:?}, expected {expected:?}", bytes.escape_ascii());
    };
    check(b"\xfd7zXZ\0\0\x04", "xz");
    check(b"BZh91AY&SY\x01\x02", "bzip2");
    check(b"PK\x03\x04\x14\0", "zip");
    let mut tar = vec![0u8; 512];
    tar[..5].copy_from_slice(b"a.txt");
    tar[257..262].copy_from_slice(b"ustar");
    check(&tar, "tar");
    check(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS");
    check(b"PERFILE2\x68\0\0\0", "perf");
    check(b"#Paraver (01/01/26 at 12:00):2345_ns:1(4):1:1(4:1)\n", "Paraver");
    check(b"PROJECTIONS-RECORD 0\n6 0\n", "Projections");
    check(b"PROJECTIONS_ID\nVERSION 11.0\n", "Projections");
    check(b"HPCTOOLKITmeta\x04\x00", "HPCToolkit");
    check(b"HPCRUN-trace______01.01b", "HPCToolkit");
    check(b"<?xml version=\"1.0\"?>\n<HPCToolkitExperiment version=\"2.0\">", "HPCToolkit");
    check(b"tlZ\x04\0\0\x01", "Tracy");
    check(b"FLR\0\0\x02", "Flight Recorder");
    check(b"go 1.22 trace\0\0\0", "Go");
    check(b"\n\x12\x08\x01\x12\x09/host:CPU\x22\x03\x08\x01\x10\0", "XPlane");
    check(b"\n\x09\x52\x07\x08\x01\x12\x03abc\n\x03\x40\x8f\x4e", "Perfetto");
    check(b"<!DOCTYPE html>\n<html>", "web page");
    check(
        br#"{"meta":{"interval":1,"startTime":1.5,"preprocessedProfileVersion":49},"libs":[],"threads":[]}"#,
        "Firefox",
    );
    check(
        br#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[]},"profiles":[]}"#,
        "speedscope",
    );
    check(br#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}],"startTime":1,"endTime":2,"samples":[1],"timeDeltas":[0]}"#, "V8");
    check(br#"{"snapshot":{"meta":{"node_fields":["type"]}},"nodes":[]}"#, "heap snapshot");
    check(
        br#"{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0,"children":[]},"samples":[]}"#,
        "heap profile",
    );
    check(br#"{"rocprofiler-sdk-tool":[{"metadata":{"pid":1}}]}"#, "rocprofv3");
    check(br#"{"schema":"1.1.1-chakra.0.0.4","pid":1,"nodes":[]}"#, "Chakra");
    check(br#"{"resourceSpans":[{"resource":{}}]}"#, "OpenTelemetry");
    check(br#"{"data":[{"traceID":"ab","spans":[{"operationName":"get"}]}]}"#, "Jaeger");
    check(b"[[0, 1, 2], [3, 4, 5]]", "without objects");
    check(b" [ 1, 2]", "without objects");
    check(b"# tracer: function_graph\n#\n 0)   0.5 us    |  f();\n", "ftrace");
    check(b"<svg xmlns=\"http://www.w3.org/2000/svg\">", "SVG");
}

#[test]
fn what_is_read_has_no_foreign_mark() {
    for bytes in [
        &b"start,finish\n1,2\n"[..],
        b"\n\nstart,finish\n1,2\n",
        b"[{\"ph\":\"X\"}]",
        b"{\"traceEvents\":[]}",
        b"{\"start\":1,\"finish\":2}\n{\"start\":2,\"finish\":3}\n",
        b"digraph G {}",
        b"tracing is fun\n1,2\n",
        b"\n",
    ] {
        assert!(identify(&source(bytes)).is_none(), "{}", bytes.escape_ascii());
    }
}

#[test]
fn names_decide_only_where_the_content_has_no_mark() {
    let (_folder, report) = named("run.nsys-rep", b"\x01\0\x02binary");
    let foreign = identify(&report).expect("known");
    assert!(foreign.is_nsight_report);
    assert!(foreign.hint.starts_with("nsys export --type sqlite --output "), "{}", foreign.hint);
    let (_folder, text) = named("table.nsys-rep", b"start,finish\n1,2\n");
    assert!(identify(&text).is_none());
    let (_folder, anchor) = named("traces.otf2", b"\x03\x42\0\0\x01");
    assert!(identify(&anchor).expect("known").what.contains("OTF2"));
}

#[test]
fn documents_and_databases_say_what_they_hold() {
    let error = refused(&source(b"{\n  \"results\": [1, {\"no\": 2}],\n  \"duration\": 49\n}")).to_string();
    assert!(error.contains("`results`, `duration`") && !error.contains("`no`"), "{error}");
    let error = refused(&source(b"\x01\x02\x03")).to_string();
    assert!(error.contains("no format recognises"), "{error}");
}

#[test]
fn a_text_that_is_not_utf8_without_nul_bytes_says_how_to_make_it_so() {
    let says = |head: &[u8]| refused(&source(head)).to_string();
    assert!(says(b"name,start\nmm,\x001\n").contains("text with NUL bytes"));
    assert!(says(&"name\0,größe".as_bytes()[..11]).contains("text with NUL bytes"));
    assert!(says(b"\xff\xfen\0a\0m\0e\0").contains("text in UTF-16"));
    assert!(says(b"\x7fELF\x02\x01\x01\0\0\0\0").contains("a program"));
    assert!(says(b"a\0b\0\xb0\x90").contains("no format recognises"));
}

#[test]
fn keys_of_the_first_level_only() {
    let check = |text: &[u8], expected: Option<&[&str]>| {
        let keys = top_level_keys(text);
        assert_eq!(
            keys.as_deref(),
            expected.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()).as_deref()
        );
    };
    check(b" {\"a\": {\"b\": [\"c\", {\"d\": 1}]}, \"e\\\"f\": \"g\", \"h\"", Some(&["a", "e\\\"f", "h"]));
    check(b"{}", Some(&[]));
    check(b"{\"a\": 1} {\"b\": 2}", Some(&["a"]));
    check(b"[1]", None);
    check(b"{a: 1}", None);
}

use super::marks::top_level_keys;
