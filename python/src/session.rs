//! Opening traces, and what a session is asked.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tq_cli::embedded;
use tq_cli::embedded::{Frame, Opening, ScalarValue};

use crate::question::Question;
use crate::stream::{must_stream, reader};
use crate::values::scalar;
use crate::wait::{wait, wait_for};

/// Traces that are open.
#[pyclass(frozen, module = "tq._tq")]
pub(crate) struct Session(Mutex<Option<embedded::Session>>);

/// Pairs of texts.
type Pairs = Vec<(String, String)>;

/// Options of [`open`], as the package gives them.
#[derive(FromPyObject)]
pub(crate) struct Options {
    #[pyo3(item)]
    from_format: Option<String>,
    #[pyo3(item)]
    options: Pairs,
    #[pyo3(item)]
    run_args: Pairs,
    #[pyo3(item)]
    runs: Option<String>,
    #[pyo3(item)]
    from_time: Option<String>,
    #[pyo3(item)]
    to_time: Option<String>,
    #[pyo3(item)]
    memory: Option<String>,
    #[pyo3(item)]
    max_value: Option<String>,
    #[pyo3(item)]
    threads: Option<usize>,
    #[pyo3(item)]
    strict: bool,
    #[pyo3(item)]
    read_only: bool,
    #[pyo3(item)]
    cache: Option<bool>,
    #[pyo3(item)]
    cluster: Option<String>,
}

impl Options {
    pub(crate) fn opening(self, traces: Vec<String>) -> Opening {
        Opening {
            traces,
            frames: Vec::new(),
            from_format: self.from_format,
            options: self.options,
            run_args: self.run_args,
            runs: self.runs,
            from: self.from_time,
            to: self.to_time,
            memory: self.memory,
            max_value: self.max_value,
            threads: self.threads,
            strict: self.strict,
            read_only: self.read_only,
            cache: self.cache,
            cluster: self.cluster,
            progress: None,
        }
    }
}

/// An opening that is shorter stays silent.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// Opens traces, and frames: the name of a table, its mapping and its rows each.
#[pyfunction]
pub(crate) fn open(
    py: Python<'_>,
    traces: Vec<String>,
    frames: Vec<(String, Pairs, Bound<'_, PyAny>)>,
    options: Options,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Session> {
    let mut opening = options.opening(traces);
    // What a frame raises is an error of its own, which threads of the engine tell as a text.
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    for (table, mapping, rows) in frames {
        must_stream(&rows)?;
        let rows = rows.unbind();
        let raised = Arc::clone(&raised);
        let read = move |py: Python<'_>| {
            reader(rows.bind(py)).map_err(|error| {
                let told = format!("{}: {}", error.get_type(py), error.value(py));
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                told
            })
        };
        let ended = || Err("the interpreter has ended".to_owned());
        opening.frames.push(Frame {
            table,
            mapping,
            rows: Box::new(move || Python::try_attach(read).unwrap_or_else(ended)),
        });
    }
    let seen: Arc<Mutex<Option<(PathBuf, u64, Option<u64>)>>> = Arc::default();
    if progress.is_some() {
        let seen = Arc::clone(&seen);
        opening.progress = Some(Arc::new(move |path, read, total| {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), read, total));
        }));
    }
    let begun = Instant::now();
    let session = wait(py, embedded::Session::open(opening), || {
        let Some(progress) = progress.as_ref().filter(|_| begun.elapsed() > PROGRESS_AFTER) else { return Ok(()) };
        let now = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        match now {
            Some((path, read, total)) => progress.call1((path.display().to_string(), read, total)).map(|_| ()),
            None => Ok(()),
        }
    });
    let session = session.map_err(|error| match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(raised) if !raised.is_instance_of::<PyException>(py) => raised,
        Some(raised) => {
            error.set_cause(py, Some(raised));
            error
        }
        None => error,
    })?;
    Ok(Session(Mutex::new(Some(session))))
}

/// Saved queries: name, title, topic, needs and parameters of each.
#[pyfunction]
pub(crate) fn queries(py: Python<'_>) -> PyResult<Vec<(String, String, String, String, Vec<String>)>> {
    let queries = wait_for(py, embedded::Session::queries())?;
    Ok(queries.into_iter().map(|query| (query.name, query.title, query.topic, query.needs, query.params)).collect())
}

impl Session {
    fn session(&self) -> PyResult<embedded::Session> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session
            .clone()
            .ok_or_else(|| PyValueError::new_err("the session is closed; `tq.open(…)` opens the traces again"))
    }
}

fn params(given: &Bound<'_, PyDict>) -> PyResult<Vec<(String, ScalarValue)>> {
    given
        .iter()
        .map(|(name, value)| {
            let name: String = name.extract()?;
            let value = scalar(&name, &value)?;
            Ok((name, value))
        })
        .collect()
}

#[pymethods]
impl Session {
    /// The length of a tick.
    #[getter]
    fn tick(&self) -> PyResult<&'static str> {
        Ok(self.session()?.tick())
    }

    /// The names of the runs.
    #[getter]
    fn runs(&self) -> PyResult<Vec<String>> {
        Ok(self.session()?.runs())
    }

    /// Bytes that tables and queries have, and may have.
    #[getter]
    fn memory(&self) -> PyResult<(usize, usize)> {
        let session = self.session()?;
        Ok((session.memory_used(), session.memory_limit()))
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Plans SQL.
    fn ask(&self, py: Python<'_>, text: String, given: &Bound<'_, PyDict>) -> PyResult<Question> {
        let session = self.session()?;
        let question = wait_for(py, session.ask(text, params(given)?))?;
        Ok(Question { question: Arc::new(question), shown: session.shown() })
    }

    /// Plans a saved query.
    fn ask_saved(&self, py: Python<'_>, name: String, given: Pairs) -> PyResult<Question> {
        let session = self.session()?;
        let question = wait_for(py, session.ask_saved(name, given))?;
        Ok(Question { question: Arc::new(question), shown: session.shown() })
    }

    /// A picture of the answer of SQL.
    fn draw(&self, py: Python<'_>, text: String, chart: String, given: &Bound<'_, PyDict>) -> PyResult<String> {
        wait_for(py, self.session()?.draw(text, chart, params(given)?))
    }

    /// The picture of a saved query.
    fn draw_saved(&self, py: Python<'_>, name: String, given: Pairs) -> PyResult<String> {
        wait_for(py, self.session()?.draw_saved(name, given))
    }

    /// The page of `tq report --html`, and why some of it has no answer.
    fn report(&self, py: Python<'_>) -> PyResult<(String, Vec<String>)> {
        let page = wait_for(py, self.session()?.report())?;
        Ok((page.html, page.unanswered.iter().map(ToString::to_string).collect()))
    }

    /// Functions: name, kind, whether it is of `tq`, syntax and description of each.
    fn functions(&self) -> PyResult<Vec<(String, &'static str, bool, String, String)>> {
        let functions = self.session()?.functions().into_iter();
        Ok(functions.map(|one| (one.name, one.kind, one.is_own, one.syntax, one.description)).collect())
    }

    /// Relation functions, and of each its parameters: the name, and whether it is a relation.
    fn relation_functions(&self) -> PyResult<Vec<(&'static str, Vec<(&'static str, bool)>)>> {
        let functions = self.session()?.relation_functions().into_iter();
        let parameters = |all: Vec<embedded::Parameter>| all.into_iter().map(|one| (one.name, one.is_input)).collect();
        Ok(functions.map(|(name, all)| (name, parameters(all))).collect())
    }

    /// Ends it: what it holds is released with the last of its answers.
    fn close(&self, py: Python<'_>) {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(session));
    }
}
