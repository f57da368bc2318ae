//! `--memory` holds for each format: ordinary traces of many small things, which no reader can hold within it, looked at from outside.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::memory::{LIMIT, measured, nothing};
use super::{Answer, Place};

/// What is promised from `--memory 256MB` up: 1.25 × the limit + 100 MB.
const PROMISED: u64 = LIMIT + LIMIT / 4 + 100_000_000;

type Written = std::io::Result<()>;

/// The file of this name below the place, written to by the function; folders are made.
fn file(place: &Place, name: &str, write: impl FnOnce(&mut BufWriter<File>) -> Written) {
    let path = place.0.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    write(&mut file).and_then(|()| file.flush()).unwrap();
}

/// A SQLite database that the statements fill.
fn database(place: &Place, name: &str, statements: &str) {
    let connection = rusqlite::Connection::open(place.0.path().join(name)).unwrap();
    connection.execute_batch(&format!("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {statements}")).unwrap();
}

/// Asks the trace for something that needs all of it, with these options: the answer is `expected`, or an error that names the limit,
/// and the process never had more memory than it may.
fn holds(place: &Place, trace: &str, sql: &str, expected: &str, options: &[&str]) {
    let command = [&["query", trace, "--format", "csv", "-c", sql], options].concat();
    let (Answer { status, stdout, stderr }, peak) = measured(place, &command, nothing());
    assert!(peak <= PROMISED, "{trace}: {} MB\n{stdout}{stderr}", peak / 1_000_000);
    let is_answered = status == Some(0) && stdout.lines().last() == Some(expected);
    let is_refused = status == Some(2) && stderr.contains("--memory") && stderr.contains("hint: ");
    assert!(is_answered || is_refused, "{trace}: {status:?} {stdout}{stderr}");
    assert!(!stderr.contains("internal error") && !stderr.contains("panicked"), "{trace}: {stderr}");
}

const COUNT: &str = "SELECT count(*) FROM tasks";

#[test]
fn chrome_traces() {
    let place = Place::new();
    let number = 1_500_000;
    let array = |name: &str, event: &dyn Fn(&mut BufWriter<File>, usize) -> Written| {
        file(&place, name, |file| {
            file.write_all(b"[\n")?;
            (0..number).try_for_each(|at| event(file, at))?;
            file.write_all(b"{}]\n")
        });
    };
    array("whole.json", &|file, at| {
        let (name, ts) = (at % 100_000, at / 8);
        writeln!(
            file,
            r#"{{"ph":"X","name":"n{name}","ts":{ts},"dur":1,"pid":1,"tid":{},"args":{{"a":{at}}}}},"#,
            at % 8
        )
    });
    holds(&place, "whole.json", COUNT, "1500000", &[]);
    array("begun.json", &|file, at| {
        writeln!(file, r#"{{"ph":"B","name":"n","ts":{at},"pid":1,"tid":{}}},"#, at % 100_000)
    });
    holds(&place, "begun.json", COUNT, "1500000", &[]);
    array("nested.json", &|file, at| {
        let phase = if at < number / 2 { "B" } else { "E" };
        writeln!(file, r#"{{"ph":"{phase}","name":"n","ts":{at},"pid":1,"tid":{}}},"#, at % 1000)
    });
    holds(&place, "nested.json", COUNT, "750000", &[]);
    array("async.json", &|file, at| {
        writeln!(file, r#"{{"ph":"b","cat":"c","id":{at},"name":"n","ts":{at},"pid":1,"tid":1}},"#)
    });
    holds(&place, "async.json", COUNT, "1500000", &[]);
    array("flows.json", &|file, at| {
        let (phase, id) = (if at % 2 == 0 { "s" } else { "f" }, at / 2);
        writeln!(file, r#"{{"ph":"{phase}","bp":"e","cat":"c","id":{id},"name":"n","ts":{at},"pid":1,"tid":1}},"#)
    });
    holds(&place, "flows.json", COUNT, "0", &[]);
    array("counters.json", &|file, at| {
        writeln!(file, r#"{{"ph":"C","name":"n{}","ts":{at},"pid":1,"args":{{"v":{at}}}}},"#, at % 1000)
    });
    holds(&place, "counters.json", "SELECT count(*) FROM counters", "1500000", &[]);
    array("names.json", &|file, at| {
        writeln!(file, r#"{{"ph":"M","name":"thread_name","pid":{at},"tid":1,"args":{{"name":"t{at}"}}}},"#)
    });
    holds(&place, "names.json", COUNT, "0", &[]);
}

#[test]
fn taskflow_traces() {
    let place = Place::new();
    file(&place, "tasks.json", |file| {
        file.write_all(br#"[{"executor":"0","data":[{"worker":0,"level":0,"data":["#)?;
        (0..2_000_000).try_for_each(|at| {
            writeln!(file, r#"{{"span":[{},{}],"name":"n{at}","type":"static"}},"#, 2 * at, 2 * at + 1)
        })?;
        file.write_all(br#"{"span":[5000000,5000001],"name":"last","type":"static"}]}]}]"#)
    });
    holds(&place, "tasks.json", COUNT, "2000001", &[]);
    file(&place, "tasks.tfp", |file| {
        let mut number = |value: u64| file.write_all(&value.to_le_bytes());
        [1, 1, 1, 1, 1, 2_500_000].into_iter().try_for_each(&mut number)?;
        for at in 0..2_500_000_u64 {
            file.write_all(&1_u64.to_le_bytes())?;
            file.write_all(b"n\0\0\0\0")?;
            [2 * at + 1, 2 * at + 2].into_iter().try_for_each(|time| file.write_all(&time.to_le_bytes()))?;
        }
        Ok(())
    });
    holds(&place, "tasks.tfp", COUNT, "2500000", &[]);
    file(&place, "graph.dot", |file| {
        file.write_all(b"digraph Taskflow {\nsubgraph cluster_p0x1 {\nlabel=\"Taskflow: t\";\n")?;
        for at in 16..1_000_016 {
            writeln!(file, "p0x{at:x}[label=\"n{at}\" ];\np0x{at:x} -> p0x{:x};", at + 1)?;
        }
        file.write_all(b"p0xf4250[label=\"last\" ];\n}\n}\n")
    });
    holds(&place, "graph.dot", "SELECT count(*) FROM links", "1000000", &[]);
}

#[test]
fn pascal_measurements() {
    let place = Place::new();
    let number = 400_000;
    file(&place, "regions.json", |file| {
        file.write_all(b"[\n")?;
        for at in 0..number {
            let comma = if at == 0 { "" } else { "," };
            writeln!(
                file,
                r#"{comma}{{"region":"{at}, {at}","filename":"a.c","executions":[[{{"argument":"1","runs":[{{"threads":1,"time":2.5}}]}}]]}}"#
            )?;
        }
        file.write_all(b"]")
    });
    holds(&place, "regions.json", "SELECT count(*) FROM pascal.executions", "400000", &[]);
    file(&place, "analyzer.json", |file| {
        file.write_all(br#"{"config":{"pascal_version":"2","command":"./a","data_descriptor":{"values":["start_time","stop_time"],"extras":{"regions":{"values":["start_time","stop_time","start_line","stop_line","thread_id","filename"]}},"keys":["cores","input","repetitions"]},"arguments":["1"]},"data":{"1;0;1":{"regions":{"1":["#)?;
        (0..number).try_for_each(|at| writeln!(file, r#"[{at}.25,{at}.5,{at},{at},0,"a.cpp"],"#))?;
        writeln!(file, r#"[{number}.25,{number}.5,1,2,0,"a.cpp"]]}},"start_time":0.0,"stop_time":1000000.0}}}}}}"#)
    });
    holds(&place, "analyzer.json", "SELECT count(*) > 1000 FROM tasks", "true", &[]);
    file(&place, "times.xml", |file| {
        file.write_all(b"<regiao>\n\t<l>12</l>\n\t<l>14</l>\n\t<p>./prog</p>\n\n<execucoes>\n")?;
        for at in 0..number {
            writeln!(
                file,
                "\t<item>\n\t\t<arg> {at} </arg>\n\t\t<execucao>\n\t\t\t<n>1</n>\n\t\t\t<t>0.5</t>\n\t\t\t<s>1.0</s>\n\t\t\t<e>1.0</e>\n\t\t</execucao>\n\t</item>"
            )?;
        }
        file.write_all(b"</execucoes>\n</regiao>\n")
    });
    holds(&place, "times.xml", "SELECT count(*) FROM pascal.executions", "400000", &[]);
    file(&place, "times.csv", |file| {
        file.write_all(b"\n,1,2,\n")?;
        (0..number).try_for_each(|at| write!(file, ",\n1,1.0,0.{at},\n2,1.0,0.5,\n"))
    });
    holds(&place, "times.csv", "SELECT count(*) > 1000 FROM pascal.executions", "true", &[]);
}

/// Blocks of a `.prof` file: their own offset, the next one's, records, kind.
const BLOCK: usize = 65_536;

fn block(file: &mut BufWriter<File>, at: i64, next: Option<i64>, records: i64, kind: u8, payload: &[u8]) -> Written {
    [at * BLOCK as i64, next.map_or(-1, |next| next * BLOCK as i64), records]
        .into_iter()
        .try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
    file.write_all(&[kind])?;
    file.write_all(payload)?;
    file.write_all(&vec![0; BLOCK - 25 - payload.len()])
}

fn padded(text: &[u8], bytes: usize) -> Vec<u8> {
    let mut padded = text.to_vec();
    padded.resize(bytes, 0);
    padded
}

#[test]
fn parsec_profiles() {
    let place = Place::new();
    const TASKS_OF_A_BLOCK: u64 = 1_300;
    const BLOCKS: u64 = 1_200;
    file(&place, "a-0.prof", |file| {
        let numbers = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let offset = |block: i64| (block * BLOCK as i64).to_le_bytes().to_vec();
        let nowhere = (-1_i64).to_le_bytes().to_vec();
        let header = [
            padded(&[&[0; 8][..], b"#PARSEC BINARY PROFILE \x0c"].concat(), 40),
            0x0123_4567_89ab_cdef_i64.to_le_bytes().to_vec(),
            numbers(&[BLOCK as i32]),
            padded(b"many", 128),
            numbers(&[2]),
            offset(1),
            numbers(&[0, 0]),
            nowhere,
            numbers(&[0, 1]),
            offset(2),
        ];
        file.write_all(&padded(&header.concat(), BLOCK))?;
        let entry =
            |name: &[u8]| [padded(name, 64), padded(b"fill:#FF0000", 128), numbers(&[0, 0]), vec![0; 3]].concat();
        block(file, 1, None, 2, 2, &[entry(b"N/A"), entry(b"c::T")].concat())?;
        let events = (2 * TASKS_OF_A_BLOCK * BLOCKS) as i64;
        let info = |text: &[u8]| [numbers(&[5, 1]), text.to_vec(), vec![0; 3]].concat();
        let stream = [
            vec![0; 8],
            events.to_le_bytes().to_vec(),
            padded(b"PaRSEC Thread 0 of VP 0 Bound on 0x1", 128),
            offset(3),
            numbers(&[2]),
            info(b"th_id0"),
            info(b"vp_id0"),
        ];
        block(file, 2, None, 1, 3, &stream.concat())?;
        for at in 0..BLOCKS {
            let mut events = Vec::with_capacity(BLOCK);
            for task in at * TASKS_OF_A_BLOCK..(at + 1) * TASKS_OF_A_BLOCK {
                for (key, time) in [(2_u16, 2 * task), (3, 2 * task + 1)] {
                    events.extend_from_slice(&key.to_le_bytes());
                    events.extend_from_slice(&[0; 2]);
                    events.extend_from_slice(&2_u32.to_le_bytes());
                    events.extend_from_slice(&task.to_le_bytes());
                    events.extend_from_slice(&time.to_le_bytes());
                }
            }
            let own = at as i64 + 3;
            let next = (at + 1 < BLOCKS).then_some(own + 1);
            block(file, own, next, 2 * TASKS_OF_A_BLOCK as i64, 1, &events)?;
        }
        Ok(())
    });
    holds(&place, "a-0.prof", COUNT, "1560000", &[]);
    file(&place, "graph.dot", |file| {
        file.write_all(b"digraph G {\n")?;
        for at in 0..500_000 {
            writeln!(
                file,
                "T_2_{at} [shape=\"polygon\",label=\"<0/0> T({at})[{at}]<16> keys = {{{at}}} {{tp: 2}}\",tooltip=\"tpid=2:tcid=0:tcname=T:tid={at}\"];\nT_2_{at} -> T_2_{} [label=\"T=>T\",color=\"#00FF00\",style=\"dashed\"]",
                at + 1
            )?;
        }
        file.write_all(b"}\n")
    });
    holds(&place, "graph.dot", "SELECT count(*) > 1000 FROM links", "true", &[]);
}

#[test]
fn simulations_of_daisen() {
    let place = Place::new();
    file(&place, "trace.csv", |file| {
        file.write_all(b"ID, ParentID, Kind, What, Where, Start, End\n")?;
        (1..1_200_001).try_for_each(|at| {
            writeln!(file, "t{at}@GPU[1].L1, t{}@GPU[1].L1, k, w, GPU[1].L{}, 0.{at:09}, 0.9", at / 2, at % 100)
        })
    });
    holds(&place, "trace.csv", COUNT, "1200000", &[]);
    database(
        &place,
        "trace.sqlite3",
        "CREATE TABLE trace (ID, ParentID, Kind, What, Location, StartTime, EndTime);
         CREATE TABLE location (ID, Locale);
         CREATE TABLE milestone (ID, TaskID, Time, Kind, What);
         CREATE TABLE exec_info (Property, Value);
         INSERT INTO location VALUES (1, 'GPU[1].L1');
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200000)
         INSERT INTO trace SELECT 't' || i || '@GPU[1].L1', 't' || (i / 2) || '@GPU[1].L1', 'k', 'w', 1, i * 1000.0, i * 1000.0 + 500 FROM n;
         INSERT INTO milestone SELECT 'm' || ID, ID, StartTime + 1, 'k', 'w' FROM trace;",
    );
    holds(&place, "trace.sqlite3", COUNT, "1200000", &[]);
}

#[test]
fn nsys_databases() {
    let place = Place::new();
    database(
        &place,
        "a.sqlite",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
         CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.11.0');
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER,
           nameId INTEGER, returnValue INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
           correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
           blockX INTEGER, blockY INTEGER, blockZ INTEGER);
         CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER,
           text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000)
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 10, i * 10 + 5, 0, -9151314441139126271, i, i % 1000 + 1, 0 FROM n;
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start + 5, end + 4, 0, 1, 7, correlationId, -9151314441139126272, nameId, nameId,
           1, 1, 1, 32, 1, 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME;
         INSERT INTO NVTX_EVENTS SELECT start, end + 1, 59, NULL, NULL, NULL, 'range ' || correlationId, globalTid, NULL, NULL, 0
           FROM CUPTI_ACTIVITY_KIND_RUNTIME;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO StringIds SELECT i, 'name ' || i FROM n;",
    );
    holds(&place, "a.sqlite", COUNT, "1500000", &[]);
}

#[test]
fn actor_programs() {
    let place = Place::new();
    file(&place, "run/PE0_send.csv", |file| {
        (0..2_000_000).try_for_each(|at| writeln!(file, "0, 0, 0, {}, 16, 1732150000.{at:09}", at % 4))
    });
    file(&place, "run/PE0_PAPI.csv", |file| {
        (0..500_000).try_for_each(|at| writeln!(file, "0, 0, 0, {}, 16, 0, 0, 53, 16, 1732150000.{at:09}", at % 4))
    });
    file(&place, "run/physical.txt", |file| {
        (0..500_000).try_for_each(|at| writeln!(file, "local_send, 400, 0, {}", at % 4))
    });
    let sends = "SELECT count(*) FROM messages WHERE kind = 'logical'";
    holds(&place, "run", sends, "2000000", &[]);
}

#[test]
fn folded_stacks() {
    let place = Place::new();
    file(&place, "a.folded", |file| (0..700_000).try_for_each(|at| writeln!(file, "main;f{};g{at};h 3", at % 1000)));
    holds(&place, "a.folded", "SELECT count(*) FROM tasks WHERE name = 'h'", "700000", &[]);
}

#[test]
fn tables_of_rows() {
    let place = Place::new();
    let options =
        ["--option", "table.start=start_us:us", "--option", "table.duration=duration_us:us", "--option", "table.id=id"];
    let number = 1_500_000;
    file(&place, "rows.csv", |file| {
        file.write_all(b"id,name,location,start_us,duration_us,size\n")?;
        (0..number).try_for_each(|at| writeln!(file, "{at},n{},l{},{at},1,{at}", at % 100_000, at % 8))
    });
    holds(&place, "rows.csv", COUNT, "1500000", &options);
    file(&place, "rows.ndjson", |file| {
        (0..number).try_for_each(|at| {
            writeln!(
                file,
                r#"{{"id":{at},"name":"n{}","location":"l{}","start_us":{at},"duration_us":1,"size":{at}}}"#,
                at % 100_000,
                at % 8
            )
        })
    });
    holds(&place, "rows.ndjson", COUNT, "1500000", &options);
    let rows = "SELECT value AS id, concat('n', value % 100000) AS name, concat('l', value % 8) AS location, value AS start_us, \
                1 AS duration_us, value AS size FROM generate_series(1, 1500000)";
    for name in ["rows.parquet", "rows.arrow"] {
        let written = place.tq_args(&["query", "run.json", "-o", name, "-c", rows]);
        assert_eq!(written.status, Some(0), "{}", written.stderr);
        holds(&place, name, COUNT, "1500000", &options);
    }
    database(
        &place,
        "rows.sqlite",
        "CREATE TABLE spans (id INTEGER, name TEXT, location TEXT, start_us INTEGER, duration_us INTEGER, size INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000)
         INSERT INTO spans SELECT i, 'n' || (i % 100000), 'l' || (i % 8), i, 1, i FROM n;",
    );
    holds(&place, "rows.sqlite", COUNT, "1500000", &options);
}
