//! Finds the checks to run: files, folders, and the queries named by `--query`.

use std::path::Path;

use tq_engine::queries::{Library, Origin, QueryError, SavedQuery, library as files};

use super::{Outcome, Verdict};
use crate::args::CheckArgs;
use crate::errors::{Failure, Problem, did_you_mean};
use crate::{library, terminal, timeout};

/// The checks of a command line in their order. A file that cannot be read is a check that could not run.
#[derive(Default)]
pub(super) struct Suite {
    pub(super) entries: Vec<Result<SavedQuery, Outcome>>,
}

impl Suite {
    pub(super) fn open(args: &CheckArgs) -> Result<Suite, Failure> {
        let library = library::open(&args.library)?;
        let mut suite = Suite::default();
        for word in &args.checks {
            let path = Path::new(word);
            if path.is_dir() {
                suite.add_folder(path)?;
            } else if path.exists() || library::is_file(word) {
                suite.add_file(path, true);
            } else {
                suite.add_named(word, &library)?;
            }
        }
        if !suite.entries.iter().any(|entry| entry.as_ref().is_ok_and(checks_something) || entry.is_err()) {
            return Err(Problem::new("there is nothing to check: no file has an `expect` or `metric` line")
                .hint("write one into the header of a query, e.g. `-- expect no rows`")
                .into());
        }
        suite.every_param_is_declared(args)?;
        Ok(suite)
    }

    /// The files of a folder; those that check nothing may lie among them.
    fn add_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let found = files::sql_files(folder)?;
        if found.is_empty() {
            return Err(Problem::new(format!("there is no `.sql` file in `{}`", folder.display())).into());
        }
        for (_, path) in found {
            let (folder, file) = (folder.to_owned(), path.clone());
            self.take(&path, move || SavedQuery::read_in(&folder, &file), false);
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, named: bool) {
        let file = path.to_owned();
        self.take(path, move || SavedQuery::read(&file), named);
    }

    /// Reading has the limit of a question: a file that takes longer is a check that could not run.
    fn take<R>(&mut self, path: &Path, read: R, named: bool)
    where
        R: FnOnce() -> Result<SavedQuery, QueryError> + Send + 'static,
    {
        match timeout::parsing(read) {
            Ok(Ok(query)) => self.add(query, named),
            Ok(Err(error)) => self.entries.push(Err(broken(path, error))),
            Err(late) => self.entries.push(Err(not_run(&stem(path), path.display().to_string(), 1, late))),
        }
    }

    fn add_named(&mut self, name: &str, library: &Library) -> Result<(), Failure> {
        match library.find(name)? {
            Some(query) => {
                self.add(query, true);
                Ok(())
            }
            None => Err(Problem::new(format!(
                "`{name}` is no file, no folder and no saved query{}",
                did_you_mean(name, library.names())
            ))
            .hint("`--query` takes the path of a `.sql` file or of a folder of them")
            .into()),
        }
    }

    fn add(&mut self, query: SavedQuery, named: bool) {
        if checks_something(&query) {
            self.entries.push(Ok(query));
        } else if named {
            let problem = Problem::new("the query checks nothing: its header has no `expect` and no `metric`")
                .hint("e.g. `-- expect no rows`, `-- expect every row: occupancy > 0.8`");
            self.entries.push(Err(not_run(&query.name, query.file(), 1, problem)));
        } else if let Origin::File(path) = &query.origin {
            terminal::note(&format!("{} checks nothing: its header has no `expect` and no `metric`", path.display()));
        }
    }

    fn every_param_is_declared(&self, args: &CheckArgs) -> Result<(), Failure> {
        let declared: Vec<&str> = (self.entries.iter().flatten())
            .flat_map(|query| query.header.params.iter().map(|param| param.name.as_str()))
            .collect();
        match args.params.iter().find(|(name, _)| !declared.contains(&name.as_str())) {
            Some((name, _)) => Err(Problem::new(format!(
                "no check has a parameter `{name}`{}",
                did_you_mean(name, declared.iter().copied())
            ))
            .into()),
            None => Ok(()),
        }
    }
}

fn checks_something(query: &SavedQuery) -> bool {
    !(query.header.expects.is_empty() && query.header.metrics.is_empty())
}

fn broken(path: &Path, error: QueryError) -> Outcome {
    let line = match &error {
        QueryError::Header { error, .. } => error.line,
        QueryError::Sql { error, .. } => error.place.as_ref().map_or(1, |place| place.line as usize),
        QueryError::Io { .. } => 1,
    };
    let problem = match Failure::from(error) {
        Failure::Told(problem) => *problem,
        _ => Problem::new("it cannot be read"),
    };
    not_run(&stem(path), path.display().to_string(), line, problem)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn not_run(name: &str, file: String, line: usize, problem: Problem) -> Outcome {
    Outcome { query: name.to_owned(), file, line, what: String::new(), verdict: Verdict::NotRun(Box::new(problem)) }
}
