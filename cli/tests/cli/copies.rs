//! What COPY writes.

use super::Place;

#[test]
fn folders_of_null_are_called_as_others_call_them() {
    let place = Place::new();
    let rows = "SELECT 0 AS a, true AS b, DATE '2024-05-06' AS c, 10 AS v UNION ALL SELECT NULL, NULL, NULL, 30";
    for (key, value) in [("a", "0"), ("b", "true"), ("c", "2024-05-06")] {
        let sql = format!("COPY ({rows}) TO 'by_{key}' STORED AS CSV PARTITIONED BY ({key})");
        let written = place.tq_args(&["query", "-c", &sql]);
        assert_eq!(written.status, Some(0), "{}", written.stderr);
        for (folder, v) in [(value, "10"), ("__HIVE_DEFAULT_PARTITION__", "30")] {
            let folder = place.0.path().join(format!("by_{key}/{key}={folder}"));
            let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
            let [file] = files.as_slice() else { panic!("{files:?}") };
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.lines().nth(1).unwrap().ends_with(&format!(",{v}")), "{text}");
        }
    }
    // Words of a dictionary: those of locations, some of which are not there.
    let sql =
        "COPY (SELECT nullif(name, 'a') AS name, task FROM tasks) TO 'by_word' STORED AS CSV PARTITIONED BY (name)";
    let written = place.tq_args(&["query", "run.json", "-c", sql]);
    assert_eq!(written.status, Some(0), "{}", written.stderr);
    assert!(place.0.path().join("by_word/name=__HIVE_DEFAULT_PARTITION__").is_dir());
    assert!(!place.0.path().join("by_word/name=a").exists());
}
