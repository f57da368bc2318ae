//! Every saved query has its header and answers rows on a trace of `fixtures/`.

use std::path::Path;

use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;

#[test]
fn saved_queries_have_a_header_and_answer() {
    let mut options = OpenOptions::new(1 << 30, 2);
    options.traces.push(TraceSpec { name: None, path: tq_tests::fixture("tfprof/wavefront_40.tfp") });
    let session = Session::open(&options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../queries");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for key in ["-- title: ", "-- topic: ", "-- needs: "] {
            assert!(text.lines().any(|line| line.starts_with(key)), "{}: no `{key}`", path.display());
        }
        let rows = runtime.block_on(async { session.sql(&text).await.unwrap().count().await.unwrap() });
        assert!(rows > 0, "{}: no rows", path.display());
        count += 1;
    }
    assert!(count > 0, "queries/ holds queries");
}
