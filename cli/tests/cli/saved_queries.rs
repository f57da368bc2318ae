//! `tq queries`, and saved queries in `tq query` and the prompt.

use expect_test::expect;

use super::Place;

const QUERY: &str = "\
-- title: The longest tasks of a name
-- topic: mine
-- needs: tasks
-- param name: TEXT = 'b' -- the name
-- param least: TIME = 0s -- shorter ones are left out
-- param limit: BIGINT
-- chart: bar x=duration y=name
-- metric duration: better=lower, tolerance=2us, by=name
-- expect rows: 1..
--
SELECT name, duration FROM tasks WHERE name = $name AND duration >= $least LIMIT $limit
";

#[test]
fn the_list_has_topics_needs_and_files() {
    let place = Place::new();
    let list = place.tq("queries").stdout;
    for line in ["\ndependencies\n", "\ntrace\n", "longest-tasks"] {
        assert!(list.contains(line), "{line}\n{list}");
    }
    // Long lines are wrapped.
    let words = list.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("(needs tasks, links.kind=dependency)"), "{list}");
    std::fs::create_dir_all(place.0.path().join(".tq/queries")).unwrap();
    std::fs::create_dir_all(place.0.path().join("config/tq/queries")).unwrap();
    place.write(".tq/queries/mine.sql", QUERY);
    place.write(".tq/queries/broken.sql", "-- title: a\n-- tpoic: b\nSELECT 1");
    place.write("config/tq/queries/mine.sql", "-- title: hidden by the project's\nSELECT 1");
    place.write("config/tq/queries/of-the-user.sql", "-- title: Another\nSELECT 1");
    let answer = place.tq("queries");
    expect![[r#"
        warning: `broken` cannot be used: ./.tq/queries/broken.sql:2: `tpoic` is no key of a header; did you mean `topic`?
    "#]]
    .assert_eq(&answer.stderr.replace(&place.0.path().canonicalize().unwrap().display().to_string(), "."));
    let words = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("The longest tasks of a name (needs tasks)"), "{}", answer.stdout);
    assert!(answer.stdout.contains("of-the-user"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("hidden by the project's"), "{}", answer.stdout);
    assert_eq!(answer.status, Some(0));
}

#[test]
fn one_is_described_with_its_sql() {
    let place = Place::new();
    std::fs::create_dir(place.0.path().join("own")).unwrap();
    place.write("own/mine.sql", QUERY);
    place.tq("queries mine --queries own").check(&expect![[r#"
        mine: The longest tasks of a name

          topic            mine
          needs            tasks
          --param name=…   the name (TEXT = b)
          --param least=…  shorter ones are left out (TIME = 0 s)
          --param limit=…  (BIGINT, to be given)
          chart            bar
          metric           duration: lower is better, tolerance 2.00 µs, by name
          expects          rows: 1..
          from             own/mine.sql

        SELECT name, duration FROM tasks WHERE name = $name AND duration >= $least LIMIT $limit;
        --- exit 0
    "#]]);
    place.tq("queries longest-task").check(&expect![[r#"
        Saved queries with `longest-task`:

        tasks
          longest-own-times  The longest single pieces of work: tasks by the time of their own, without
                             nested ones and without waiting for the last rank (needs tasks.start)
          longest-tasks      The longest tasks (needs tasks)

        `tq queries NAME` describes one.
        --- exit 0
    "#]]);
    place.tq("queries --queries nowhere").check(&expect![[r#"
        --- stderr
        error: cannot read `nowhere`: no such file or directory
        --- exit 2
    "#]]);
}

#[test]
fn a_name_is_answered_with_its_parameters() {
    let place = Place::new();
    std::fs::create_dir(place.0.path().join("own")).unwrap();
    place.write("own/mine.sql", QUERY);
    place.tq("query run.json longest-tasks").check(&expect![[r#"
        run,task,name,location,start,duration
        run,2,b,E0/W1,20000,60000
        run,0,a,E0/W0,0,40000
        run,1,c,E0/W0,50000,10000
        --- exit 0
    "#]]);
    place.tq("query run.json mine --queries own --param limit=5").check(&expect![[r#"
        name,duration
        b,60000
        --- exit 0
    "#]]);
    place.tq("query run.json own/mine.sql --param limit=5 --param name=c --param least=10us").check(&expect![[r#"
        name,duration
        c,10000
        --- exit 0
    "#]]);
    // Text stays text.
    place
        .tq_args(&["query", "run.json", "-f", "own/mine.sql", "--param", "limit=5", "--param", "name=' OR 1=1 --"])
        .check(&expect![[r#"
            name,duration
            --- exit 0
        "#]]);
    let svg = place.tq("query run.json mine --queries own --param limit=5 --format svg").stdout;
    assert!(svg.starts_with("<svg") && svg.contains("The longest tasks of a name"), "{svg}");
}

#[test]
fn what_can_be_wrong_with_a_saved_query() {
    let place = Place::new();
    std::fs::create_dir(place.0.path().join("own")).unwrap();
    place.write("own/mine.sql", QUERY);
    place.write("own/column.sql", "-- title: a\n--\nSELECT name,\n  strat FROM tasks");
    place.write("own/syntax.sql", "-- title: a\n--\nSELECT name,\nFROM FROM tasks");
    place.write("own/header.sql", "-- title: a\n-- expct no rows\nSELECT 1");
    place.write("own/needs.sql", "-- needs: messages, no tasks\nSELECT 1");
    place.tq("query run.json").check(&expect![[r#"
        --- stderr
        error: there is no question after the trace `run.json`
        hint: give SQL with `-c`, a file with `-f`, or the name of a saved query; `tq queries` lists them
        --- exit 2
    "#]]);
    place.tq("query").check(&expect![[r#"
        --- stderr
        error: there is no question
        hint: give SQL with `-c`, a file with `-f`, or the name of a saved query; `tq queries` lists them
        --- exit 2
    "#]]);
    place.tq("query run.json longest-task").check(&expect![[r#"
        --- stderr
        error: no saved query `longest-task`; did you mean `longest-tasks`?
        hint: `tq queries` lists the saved queries
        --- exit 2
    "#]]);
    place.tq("query run.json mine --queries own").check(&expect![[r#"
        --- stderr
        error: `mine` needs a value for its parameter `limit`
        hint: `--param limit=…` gives it one (BIGINT), in a prompt or template `limit=…` behind the query's name
        --- exit 2
    "#]]);
    place.tq("query run.json mine --queries own --param limit=many").check(&expect![[r#"
        --- stderr
        error: parameter `limit` of `mine`: `many` is no whole number
        hint: `tq queries mine` describes its parameters
        --- exit 2
    "#]]);
    place.tq("query run.json mine --queries own --param limt=1").check(&expect![[r#"
        --- stderr
        error: `mine` has no parameter `limt`; did you mean `limit`?
        hint: its parameters are name, least, limit
        --- exit 2
    "#]]);
    place.tq("query run.json mine --queries own --param limit=1 --param least=soon").check(&expect![[r#"
        --- stderr
        error: parameter `least` of `mine`: `soon` is no time; write it like `1.5ms`, `300us`, `2s`, or as bare ticks
        hint: `tq queries mine` describes its parameters
        --- exit 2
    "#]]);
    place.tq("query run.json column --queries own").check(&expect![[r#"
        --- stderr
        error: own/column.sql:4: no column `strat`
          |
        4 |   strat FROM tasks
          |   ^^^^^
        hint: did you mean `start`?
        --- exit 2
    "#]]);
    place.tq("query run.json syntax --queries own").check(&expect![[r#"
        --- stderr
        error: own/syntax.sql:4: no table `from`
          |
        4 | FROM FROM tasks
          |      ^^^^^^^^^^
        hint: there is counters, events, import_stats, links, locations, messages, runs, tasks, busy_lanes, collectives, executions, idle_stretches, … (65 in all)
        --- exit 2
    "#]]);
    place.tq("query run.json header --queries own").check(&expect![[r#"
        --- stderr
        error: own/header.sql:2: `expct` is no key of a header; did you mean `expect`?
        hint: a header has the keys title, topic, needs, param, chart, metric, expect; other comments go below a bare `--`
        --- exit 2
    "#]]);
    place.tq("query run.json needs --queries own").check(&expect![[r#"
        --- stderr
        error: `needs` needs rows in `messages` and no rows in `tasks`: these traces are not like that
        hint: `tq tables` says what the tables are for, `SELECT * FROM runs` what was opened
        --- exit 2
    "#]]);
    place.tq("query run.json nowhere.sql").check(&expect![[r#"
        --- stderr
        error: cannot read `nowhere.sql`: no such file or directory
        --- exit 2
    "#]]);
}

#[test]
fn the_prompt_includes_statements_and_saved_queries() {
    let place = Place::new();
    place.write(
        "saved.sql",
        "-- title: How many\n-- param most: BIGINT = 2 -- how many\nSELECT name FROM tasks ORDER BY name LIMIT $most",
    );
    place.write("plain.sql", "SELECT 1 AS one;\n\n\\timing\n\\timing\nSELECT\n  nope FROM tasks;\n");
    place.tq_with("run.json", "\\i saved.sql\n\\i plain.sql\n").check(&expect![[r#"
        name
        a
        b
        one
        1
        --- stderr
        Timing is on.
        Timing is off.
        error: plain.sql:6: no column `nope`
          |
        6 |   nope FROM tasks;
          |   ^^^^
        hint: there is run, task, id, parent, stack_parent, name, kind, role, location, start, finish, duration, … (14 in all); what tracers say besides stands in `args`: `args->>'nope'`, if it is there
        --- exit 2
    "#]]);
}
