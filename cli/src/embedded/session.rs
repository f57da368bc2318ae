//! A session of a program: what is open, and what can be asked.

use std::sync::Arc;

use tq_engine::queries::{Origin, SavedQuery};
use tq_engine::session::Session as EngineSession;
use tq_engine::sql::{self, SqlError};

use super::errors::{Error, Kind, Message};
use super::frames;
use super::opening::{Opening, Watcher};
use super::pending::Pending;
use super::questions::Question;
use super::shared::Shared;
use crate::args::LibraryArgs;
use crate::connection::Params;
use crate::errors::{Failure, Problem};
use crate::functions::{self, Origin as Brought};
use crate::{config, library, open, workers};

/// Traces that are open. Clones are the same session, which ends with the last of them and of its questions.
#[derive(Clone)]
pub struct Session(pub(super) Arc<Shared>);

/// A saved query.
#[derive(Debug, Clone)]
pub struct QueryInfo {
    /// Its name.
    pub name: String,
    /// The question that it answers.
    pub title: String,
    /// Where lists put it.
    pub topic: String,
    /// What the traces must hold.
    pub needs: String,
    /// Names of its parameters.
    pub params: Vec<String>,
}

/// A function.
#[derive(Debug, Clone)]
pub struct FunctionInfo {
    /// Its name.
    pub name: String,
    /// `scalar`, `aggregate`, `window` or `relation`.
    pub kind: &'static str,
    /// Whether `tq` brings it.
    pub is_own: bool,
    /// `busy(start, finish)`.
    pub syntax: String,
    /// What it computes.
    pub description: String,
}

/// An input or an option of a relation function.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a relation.
    pub is_input: bool,
}

impl Session {
    /// Opens traces and frames. Blocking work goes on by itself; where it is abandoned, a trace is read to its end, and frames are not.
    pub fn open(mut opening: Opening) -> Pending<Session> {
        Pending::begin(Kind::Trace, move || {
            config::load()?;
            let frames = std::mem::take(&mut opening.frames);
            let folder = if frames.is_empty() { None } else { Some(frames::written(frames)?) };
            let progress = opening.progress.take().map(|progress| Arc::new(Watcher(progress)) as Arc<_>);
            let mut args = opening.args()?;
            if let Some(folder) = &folder {
                args.traces.insert(0, format!("frames={}", folder.file(frames::MAPPING).display()));
            }
            let workers = workers::of_traces(&args)?;
            let args = workers.as_ref().map_or(args, |(_, seen)| seen.clone());
            open::check_window(&args)?;
            let session = open::read_with(&args, progress, EngineSession::open).map_err(|failure| match &folder {
                Some(folder) => frames::named(failure, folder),
                None => failure,
            })?;
            open::told(&session, &args)?;
            let session = Arc::new(session);
            if let Some((workers, seen)) = &workers {
                workers.help(&session, seen)?;
            }
            let workers = workers.map(|(workers, _)| workers);
            Ok(Session(Arc::new(Shared::new(session, workers, open::threads(&args)))))
        })
    }

    /// The length of a tick: `ns`, `ps` or `weights`.
    pub fn tick(&self) -> &'static str {
        self.0.tick()
    }

    /// The names of the runs.
    pub fn runs(&self) -> Vec<String> {
        self.0.session.runs().iter().map(|run| run.name.clone()).collect()
    }

    /// Bytes for tables and queries.
    pub fn memory_limit(&self) -> usize {
        self.0.session.memory_limit()
    }

    /// Bytes that tables and queries have now.
    pub fn memory_used(&self) -> usize {
        self.0.session.context().runtime_env().memory_pool.reserved()
    }

    /// Plans SQL. Of several statements, those before the last define something.
    pub fn ask(&self, text: String, params: Params) -> Pending<Question> {
        let threads = match self.0.threads() {
            Ok(threads) => threads,
            Err(error) => return Pending::failed(error),
        };
        let shared = Arc::clone(&self.0);
        self.0.begin(&threads, move |done| async move {
            match of_text(&shared, &text, params).await {
                Ok((question, notes)) => done(Ok(question), notes),
                Err(error) => done(Err(error), Vec::new()),
            }
        })
    }

    /// Plans a saved query: one by its name, or the path of a file. Values are texts, as on the command line.
    pub fn ask_saved(&self, name: String, given: Vec<(String, String)>) -> Pending<Question> {
        let threads = match self.0.threads() {
            Ok(threads) => threads,
            Err(error) => return Pending::failed(error),
        };
        let shared = Arc::clone(&self.0);
        Pending::worded(Kind::Query, move || {
            let bound = || -> Result<_, Failure> {
                let query = saved(&name)?;
                shared.connection()?.meets(&query)?;
                let params = query.bind(&given, shared.session.tick())?;
                Ok((query, params))
            };
            let (query, params) = bound().map_err(|failure| Error::of(Kind::Query, failure))?;
            let place = (query.file(), query.statement.line);
            let planned = threads.wait(Question::plan(&shared, query.statement, params, Some(place)));
            planned.map(|(question, _)| question)
        })
    }

    /// The saved queries that can be named, by name.
    pub fn queries() -> Pending<Vec<QueryInfo>> {
        Pending::begin(Kind::Query, || {
            let library = library::open(&LibraryArgs::default())?;
            let mut infos = Vec::new();
            for name in library.names() {
                // One that cannot be read is no obstacle to the others.
                let Ok(Some(query)) = library.find(name) else { continue };
                infos.push(QueryInfo {
                    name: name.to_owned(),
                    title: query.title().to_owned(),
                    topic: query.header.topic.clone(),
                    needs: crate::errors::queries::needs_in_words(&query.header.needs),
                    params: query.header.params.iter().map(|param| param.name.clone()).collect(),
                });
            }
            Ok(infos)
        })
    }

    /// The functions, by name.
    pub fn functions(&self) -> Vec<FunctionInfo> {
        let info = |function: functions::Function| FunctionInfo {
            kind: function.kind.word(),
            is_own: function.origin == Brought::Tq,
            name: function.name,
            syntax: function.syntax,
            description: function.description,
        };
        functions::all(&self.0.session).into_iter().filter(functions::Function::is_for_people).map(info).collect()
    }

    /// Inputs and options of each relation function.
    pub fn relation_functions(&self) -> Vec<(&'static str, Vec<Parameter>)> {
        let parameter = |parameter: &tq_udfs::relation::Parameter| Parameter {
            name: parameter.name(),
            is_input: parameter.as_input().is_some(),
        };
        let functions = self.0.session.relation_functions();
        functions.iter().map(|one| (one.name(), one.parameters().iter().map(parameter).collect())).collect()
    }
}

async fn of_text(shared: &Arc<Shared>, text: &str, params: Params) -> Result<(Question, Vec<Message>), Error> {
    let failed = |error: SqlError| Error::of(Kind::Query, error.into());
    let mut statements = sql::parse(text).map_err(failed)?;
    let Some(last) = statements.pop() else {
        let problem = Problem::new("there is no statement in the SQL").hint("try `SELECT * FROM runs`");
        return Err(Error::of_problem(Kind::Query, problem));
    };
    let is_alone = statements.is_empty() && params.is_empty();
    every_value_is_wanted(&params, statements.iter().chain([&last]))?;
    for statement in statements {
        let (question, _) = Question::plan(shared, statement, params.clone(), None).await?;
        if !question.columns().fields().is_empty() {
            let problem = Problem::new("only the last statement may be a question: there is one answer")
                .hint("ask the others by themselves");
            return Err(Error::of_problem(Kind::Query, problem));
        }
    }
    let (mut question, notes) = Question::plan(shared, last, params, None).await?;
    question.is_alone = is_alone;
    Ok((question, notes))
}

/// A value that no statement asks for is a mistake: the answer would not be the one that was meant.
fn every_value_is_wanted<'a>(
    params: &Params,
    statements: impl Iterator<Item = &'a tq_engine::sql::Statement>,
) -> Result<(), Error> {
    let wanted: Vec<String> =
        statements.flat_map(|statement| crate::statements::placeholders(&statement.text)).collect();
    match params.iter().find(|(name, _)| !wanted.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let near = crate::errors::did_you_mean(name, wanted.iter().map(String::as_str));
            let problem = Problem::new(format!("no statement has `${name}`{near}"))
                .hint(format!("`{name}=…` is the value of `${name}` in the SQL"));
            Err(Error::of_problem(Kind::Query, problem))
        }
    }
}

/// A saved query by its name or its file.
pub(super) fn saved(name: &str) -> Result<SavedQuery, Failure> {
    if !library::is_file(name) {
        return library::find(&library::open(&LibraryArgs::default())?, name);
    }
    let path = std::path::Path::new(name);
    let text = tq_engine::paths::read_text(path).map_err(|error| Problem::file("read", path, &error))?;
    let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(SavedQuery::parse(&stem, Origin::File(path.to_owned()), &text)?)
}
