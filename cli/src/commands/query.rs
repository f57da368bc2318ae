//! `tq query`: answers SQL and leaves.
//!
//! Statements run in order; the first that fails stops the run, with file and line. Results go to stdout or to one file.

use std::io::Read;
use std::path::Path;

use tq_engine::sql::{self, Statement};

use crate::args::QueryArgs;
use crate::ask::{Asker, Params};
use crate::charts::gantt::LaneOrder;
use crate::errors::{Failure, Problem, did_you_mean};
use crate::output::chrome::{Chrome, LOCATIONS, Places};
use crate::output::{self, Destination, Format, Look, Picture};
use crate::statements;

pub(crate) fn run(args: &QueryArgs) -> Result<(), Failure> {
    let format = output::choose(args.format, args.output.as_deref())?;
    let (text, file) = read(args)?;
    let statements = sql::parse(&text).map_err(|error| placed(error.into(), None, file.as_deref()))?;
    if statements.is_empty() {
        return Err(Problem::new("there is no statement in the SQL").hint("try `-c 'SELECT * FROM runs'`").into());
    }
    let params = params(&args.params, &statements)?;
    let mut asker = Asker::open(&args.open)?;
    let picture = if format == Format::Svg { picture(&mut asker)? } else { Picture::default() };

    let target = args.output.as_deref();
    let (destination, writer) = Destination::open(target)?;
    let tick = asker.session().tick();
    let look = if target.is_some() { Look::plain(tick) } else { Look::of_stdout(tick) };
    let mut output: Box<dyn output::Output> = match format {
        Format::Chrome => {
            let places = Places::of(&asker.collect(LOCATIONS, &Params::new())?)?;
            Box::new(Chrome::new(writer, tick, places))
        }
        _ => output::create(format, writer, &look, target, picture),
    };
    for statement in &statements {
        asker
            .run(statement, &params, format.arrange(), output.as_mut())
            .map_err(|failure| placed(failure, Some(statement), file.as_deref()))?;
    }
    output.close()?;
    drop(output);
    destination.commit()
}

/// The SQL and the name of its file, if it is from one.
fn read(args: &QueryArgs) -> Result<(String, Option<String>), Failure> {
    if let Some(sql) = &args.command {
        return Ok((sql.clone(), None));
    }
    let Some(path) = args.file.as_deref() else { return Err(Problem::new("there is no SQL").into()) };
    if path == Path::new("-") {
        if args.open.traces.iter().any(|trace| trace == "-" || trace.ends_with("=-")) {
            return Err(Problem::new("standard input cannot be both the trace and the SQL")
                .hint("give the SQL with `-c` or in a file")
                .into());
        }
        let mut sql = String::new();
        std::io::stdin()
            .read_to_string(&mut sql)
            .map_err(|error| Problem::new(format!("cannot read SQL from standard input: {error}")))?;
        return Ok((sql, Some("stdin".to_owned())));
    }
    let sql = std::fs::read_to_string(path).map_err(|error| Problem::file("read", path, &error))?;
    Ok((sql, Some(path.display().to_string())))
}

/// Typed values. One that no statement asks for is a mistake: the answer would not be the one that was meant.
fn params(given: &[(String, String)], statements: &[Statement]) -> Result<Params, Failure> {
    let wanted: Vec<String> =
        statements.iter().flat_map(|statement| statements::placeholders(&statement.text)).collect();
    for (name, _) in given {
        if !wanted.contains(name) {
            let near = did_you_mean(name, wanted.iter().map(String::as_str));
            return Err(Problem::new(format!("no statement has `${name}`{near}"))
                .hint(format!("`--param {name}=…` is the value of `${name}` in the SQL"))
                .into());
        }
    }
    Ok(given.iter().map(|(name, value)| (name.clone(), statements::typed(value))).collect())
}

/// Says in which line of which file a statement failed.
fn placed(failure: Failure, statement: Option<&Statement>, file: Option<&str>) -> Failure {
    let Some(file) = file else { return failure };
    let Failure::Told(mut problem) = failure else { return failure };
    let line = problem.excerpt.as_ref().map(|excerpt| excerpt.line_number);
    let line = line.or_else(|| statement.map(|statement| statement.line as usize));
    problem.place = Some(line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")));
    Failure::Told(problem)
}

/// The title of a picture, and the order in which the traces want their locations.
pub(crate) fn picture(asker: &mut Asker) -> Result<Picture, Failure> {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::compute::cast;
    use datafusion::arrow::datatypes::DataType;
    let names: Vec<&str> = asker.session().runs().iter().map(|run| run.name.as_str()).collect();
    let title = names.join(", ");
    let rows = asker.collect(
        "SELECT locations.run, location FROM locations JOIN runs ON runs.run = locations.run \
         ORDER BY run_number, sort_index, location",
        &Params::new(),
    )?;
    let text = |column: usize| cast(rows.column(column), &DataType::Utf8);
    let (runs, locations) = (text(0)?, text(1)?);
    let (runs, locations) = (runs.as_string::<i32>(), locations.as_string::<i32>());
    let lanes = (runs.iter().zip(locations.iter()))
        .map(|(run, location)| (run.unwrap_or_default().to_owned(), location.unwrap_or_default().to_owned()))
        .collect();
    Ok(Picture { title, order: LaneOrder { lanes } })
}
