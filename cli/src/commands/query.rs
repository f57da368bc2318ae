//! `tq query`: answers SQL or a saved query and exits.
//!
//! Statements run in order; the first that fails stops the run, with file and line. Results go to stdout or to one file.

use std::path::Path;

use tq_engine::open::TraceSpec;
use tq_engine::paths::read_text;
use tq_engine::queries::header::has_header;
use tq_engine::queries::{Origin, SavedQuery};
use tq_engine::remote::is_url;
use tq_engine::sql::{self, Statement};
use tq_udfs::ticks::Tick;

use crate::args::{OpenArgs, QueryArgs};
use crate::charts::Chart;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem, did_you_mean};
use crate::files::{Inputs, Outputs};
use crate::format::Format;
use crate::output::{self, Destination, Look, Picture};
use crate::{library, open, pictures, statements, timeout};

/// What is asked.
enum Question {
    /// SQL, and the name of its file, if it is from one.
    Sql { statements: Vec<Statement>, file: Option<String> },
    /// A saved query.
    Saved(Box<SavedQuery>),
}

pub(crate) fn run(args: &QueryArgs) -> Result<(), Failure> {
    timeout::start(args.timeout);
    open::watch_memory(&args.open);
    let chart = args.chart.as_deref().map(Chart::parse).transpose()?;
    let format = output::choose(args.format.or(chart.as_ref().map(|_| Format::Svg)), args.output.as_deref())?;
    if chart.is_some() && format != Format::Svg {
        return Err(Problem::new("--chart draws a picture, but --format names another format")
            .hint("leave out --format")
            .into());
    }
    if let (true, None, Some(file)) = (chart.is_some(), args.format, &args.output) {
        output::must_be_svg(file)?;
    }
    let (question, open) = question(args)?;
    must_not_overwrite_inputs(&question, &open, args)?;
    // What is wrong with the values or the chart shows before minutes of reading.
    let (plain_params, chart, chart_line) = match &question {
        Question::Sql { statements, .. } => (params(&args.params, statements)?, chart, None),
        Question::Saved(query) => {
            let values = query.bind(&args.params, Tick::Nanosecond)?;
            let own = pictures::charts(query, &values)?.into_iter().next();
            match (chart, own.filter(|_| format == Format::Svg)) {
                (None, Some((own, line))) => (Params::new(), Some(own), Some(line)),
                (given, _) => (Params::new(), given, None),
            }
        }
    };
    let mut connection = Connection::open(&open)?;
    let mut picture = Picture { chart, ..pictures::surroundings(&mut connection, format)? };
    let tick = connection.session().tick();
    let (statements, params, file) = match question {
        Question::Sql { statements, file } => (statements, plain_params, file),
        Question::Saved(query) => {
            connection.meets(&query)?;
            query.title().clone_into(&mut picture.title);
            (vec![query.statement.clone()], query.bind(&args.params, tick)?, Some(query.file()))
        }
    };

    let target = args.output.as_deref();
    let (destination, writer) = Destination::open(target, format.spelling())?;
    let look = if target.is_some() { Look::plain(tick) } else { Look::of_stdout(tick) };
    let mut output = output::create(format, writer, &look, target, picture);
    for statement in &statements {
        let placed = |failure: Failure| match &file {
            Some(file) => failure.in_file_of_chart(file, chart_line, statement.line),
            None => failure,
        };
        let _watched = timeout::watched();
        connection.run(statement, &params, output.as_mut()).map_err(placed)?;
    }
    let _watched = timeout::watched();
    output.close()?;
    drop(output);
    destination.commit()
}

/// Refuses a command whose output is one of the files that it reads.
fn must_not_overwrite_inputs(question: &Question, open: &OpenArgs, args: &QueryArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::of(open);
    inputs.folders(&library::directories(&args.library));
    match question {
        Question::Saved(query) => inputs.query(query),
        Question::Sql { file, .. } => file.iter().for_each(|file| inputs.add(Path::new(file))),
    }
    let mut outputs = Outputs::default();
    outputs.add("-o", args.output.as_deref());
    outputs.apart_from(&inputs)
}

/// What is asked, and of which traces: without -c and -f, the last argument is the question.
fn question(args: &QueryArgs) -> Result<(Question, OpenArgs), Failure> {
    let mut open = args.open.clone();
    if let Some(sql) = &args.command {
        return Ok((plain(sql, None)?, open));
    }
    if let Some(path) = args.file.as_deref() {
        return Ok((of_file(path, &open)?, open));
    }
    let Some(name) = open.traces.pop() else {
        return Err(Problem::new("there is no question")
            .hint("give SQL with `-c`, a file with `-f`, or the name of a saved query; `tq queries` lists them")
            .into());
    };
    if library::is_file(&name) {
        return Ok((of_file(Path::new(&name), &open)?, open));
    }
    let library = library::open(&args.library)?;
    if is_sql(&name) {
        return Err(Problem::new(format!("no saved query `{name}`")).hint("SQL is asked with `-c 'SELECT …'`").into());
    }
    // `longest-tasks limit=3`, as templates and the prompt have it.
    if let Some(saved) = open.traces.last()
        && name.contains('=')
        && !Path::new(name.split_once('=').map_or("", |(_, path)| path)).exists()
        && library.has(saved)
    {
        return Err(Problem::new(format!("`{name}` is in the place of the question, after `{saved}`"))
            .hint(format!("give the value with `--param {name}`"))
            .into());
    }
    // `longest-tasks run.json`
    if let [first, ..] = open.traces.as_slice()
        && Path::new(&name).exists()
        && !Path::new(first).exists()
        && library.has(first)
    {
        let traces: Vec<&str> = open.traces.iter().skip(1).chain([&name]).map(String::as_str).collect();
        return Err(Problem::new(format!("there is no question after the trace `{name}`"))
            .hint(format!("the question comes last: `tq query {} {first}`", traces.join(" ")))
            .into());
    }
    // A trace where a question should be: the question was forgotten.
    if !library.has(&name) && (Path::new(&name).exists() || name.contains('=') || is_url(&TraceSpec::parse(&name).path))
    {
        let trace = TraceSpec::shown_text(&name);
        return Err(Problem::new(format!("there is no question after the trace `{trace}`"))
            .hint("give SQL with `-c`, a file with `-f`, or the name of a saved query; `tq queries` lists them")
            .into());
    }
    let query = library::find(&library, &name)?;
    if open.traces.is_empty() && !query.header.needs.is_empty() {
        return Err(Problem::new(format!("`{name}` asks about a trace, and none is given"))
            .hint(format!("`tq query TRACE {name}`"))
            .into());
    }
    Ok((Question::Saved(Box::new(query)), open))
}

/// Whether a question is SQL and no name.
fn is_sql(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    text.trim().contains(char::is_whitespace)
        && ["select", "from", "with", "show", "describe", "explain", "values", "create"].contains(&first.as_str())
}

/// A file is a saved query when it begins with a header, else SQL.
fn of_file(path: &Path, open: &OpenArgs) -> Result<Question, Failure> {
    let stdin = path == Path::new("-");
    let text = if stdin { stdin_sql(open)? } else { read(path)? };
    let file = if stdin { "stdin".to_owned() } else { path.display().to_string() };
    if !has_header(&text) {
        return plain(&text, Some(file));
    }
    let name = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
    let name = if stdin { file.clone() } else { name };
    let query = timeout::parsing(move || SavedQuery::parse(&name, Origin::File(file.into()), &text))??;
    Ok(Question::Saved(Box::new(query)))
}

fn plain(sql: &str, file: Option<String>) -> Result<Question, Failure> {
    let text = sql.to_owned();
    let statements = timeout::parsing(move || sql::parse(&text))?.map_err(|error| match &file {
        Some(file) => Failure::from(error).in_file(file, None),
        None => error.into(),
    })?;
    if statements.is_empty() {
        return Err(Problem::new("there is no statement in the SQL").hint("try `-c 'SELECT * FROM runs'`").into());
    }
    Ok(Question::Sql { statements, file })
}

fn read(path: &Path) -> Result<String, Failure> {
    let file = path.to_owned();
    timeout::parsing(move || read_text(&file))?.map_err(|error| Problem::file("read", path, &error).into())
}

fn stdin_sql(open: &OpenArgs) -> Result<String, Failure> {
    if open.traces.iter().any(|trace| trace == "-" || trace.ends_with("=-")) {
        return Err(Problem::new("standard input cannot be both the trace and the SQL")
            .hint("give the SQL with `-c` or in a file")
            .into());
    }
    let read = timeout::parsing(|| std::io::read_to_string(std::io::stdin()))?;
    Ok(read.map_err(|error| Problem::new(format!("cannot read SQL from standard input: {error}")))?)
}

/// Typed values. One that no statement asks for is a mistake: the answer would not be the one that was meant.
fn params(given: &[(String, String)], statements: &[Statement]) -> Result<Params, Failure> {
    let wanted: Vec<String> =
        statements.iter().flat_map(|statement| statements::placeholders(&statement.text)).collect();
    for (name, _) in given {
        if !wanted.contains(name) {
            let bare = name.trim_start_matches(['$', ':', '@']);
            if bare != name {
                return Err(Problem::new(format!("`{name}` is not a valid parameter name"))
                    .hint(format!("write `--param {bare}=…`, and `${bare}` in the SQL"))
                    .into());
            }
            let near = did_you_mean(name, wanted.iter().map(String::as_str));
            return Err(Problem::new(format!("no statement has `${name}`{near}"))
                .hint(format!("`--param {name}=…` is the value of `${name}` in the SQL"))
                .into());
        }
    }
    Ok(given.iter().map(|(name, value)| (name.clone(), statements::typed(value))).collect())
}
