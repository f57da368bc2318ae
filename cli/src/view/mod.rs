//! `tq view`: the trace in a browser, with the query engine behind it.
//!
//! Life of a page: [`address`] chooses a path that nobody guesses → [`guard`] lets only that through → [`assets`] are the page's files →
//! the page asks for tiles, which [`mod@tile`] cuts from the arrays of [`model`] and which wait for no query, and for [`answers`] of queries,
//! each on a connection of its own ([`asked`]). What comes back are columns ([`wire`]), or small objects.

mod address;
mod answers;
mod asked;
mod assets;
mod busy;
mod counters;
pub(crate) mod enclosed;
mod gathered;
mod guard;
mod joined;
mod kept;
mod lane;
mod model;
mod tile;
mod wire;

use std::collections::HashMap;
use std::io::{Seek, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tq_engine::queries::Library;
use tq_engine::sql;
use tq_engine::trace::Slice;

use crate::args::{OpenArgs, ViewArgs};
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem};
use crate::format::Format;
use crate::output::{self, Look, Picture};
use crate::{library, open};

use address::Token;
use asked::Asked;
use counters::Counters;
use model::{Frame, Model};
use wire::Columns;

pub(crate) fn run(args: &ViewArgs) -> Result<(), Failure> {
    if args.open.traces.is_empty() {
        return Err(Problem::new("there is nothing to look at").hint("`tq view TRACE`").into());
    }
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0)));
    let listener = listener.map_err(|error| cannot_listen(args.port, &error))?;
    // The page only asks.
    let open = OpenArgs { read_only: true, keep_runs: true, ..args.open.clone() };
    open::watch_memory(&open);
    let library = library::open(&args.library)?;
    let mut connection = Connection::open(&open)?;
    let mut model = Model::read(&mut connection)?;
    let counters = Counters::read(&mut connection, &model)?;
    let of_counters = [false, true].map(|is_aligned| counters.reach(Frame::of(&model, is_aligned)));
    model.extend_reach(of_counters);
    let info = answers::info(&mut connection, &model)?;
    let token = Token::random()?;
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    let page = Arc::new(Page {
        info,
        model,
        counters,
        library,
        words: answers::words(&connection),
        asked: Arc::new(Asked::of(&connection)?),
        queries: OnceLock::new(),
        whole: Mutex::new(connection.beside()?),
        part: Mutex::default(),
    });
    let router = router(page, &token);
    address::tell(port, &token, !args.no_open)?;
    let served = connection.runtime().serve(async move { axum::serve(TcpListener::from_std(listener)?, router).await });
    match served {
        Ok(ended) => Ok(ended?),
        Err(Failure::Interrupted) => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn cannot_listen(port: Option<u16>, error: &std::io::Error) -> Problem {
    let port = port.map_or_else(|| "any port".to_owned(), |port| format!("port {port}"));
    let problem = Problem::new(format!("cannot listen on {port}: {}", tq_engine::error::io_reason(error)));
    problem.hint("without --port, any free one is taken")
}

/// What all requests share.
struct Page {
    info: Value,
    model: Model,
    counters: Counters,
    library: Library,
    words: Value,
    asked: Arc<Asked>,
    queries: OnceLock<Value>,
    /// What slices are cut from.
    whole: Mutex<Connection>,
    /// The part that was asked about last.
    part: Mutex<Option<Part>>,
}

/// Connections to the tasks of a range.
struct Part {
    from: i64,
    to: i64,
    asked: Arc<Asked>,
}

type Shared = State<Arc<Page>>;
/// The parameters of a request, which stand behind `?`.
type Given = Query<HashMap<String, String>>;

fn router(page: Arc<Page>, token: &Token) -> Router {
    let below = Router::new()
        .route("/{file}", get(|Path(file): Path<String>| async move { assets::file(&file) }))
        .route("/info", get(|State(page): Shared| async move { json_of(&page.info) }))
        .route("/words", get(|State(page): Shared| async move { json_of(&page.words) }))
        .route("/lanes", whole(|page, frame| page.model.lane_columns(frame)))
        .route("/names", whole(|page, _| page.model.name_columns(|_| true)))
        .route("/busy", whole(|page, frame| page.model.busy_columns(frame)))
        .route("/counters", whole(|page, _| page.counters.columns()))
        .route("/tile", get(tile))
        .route("/counter", get(counter))
        .route("/task", get(task))
        .route("/search", get(search))
        .route("/layer", get(layer).post(layer_of_sql))
        .route("/sql", post(rows))
        .route("/sql.csv", get(|page: Shared, given: Given| download(page, given, Format::Csv)))
        .route("/sql.parquet", get(|page: Shared, given: Given| download(page, given, Format::Parquet)))
        .route("/queries", get(queries))
        .route("/saved", get(saved))
        .with_state(page);
    Router::new()
        // What is nested at `/TOKEN` does not match `/TOKEN/`.
        .route(&format!("/{}/", token.text()), get(|| async { assets::file("") }))
        .nest(&format!("/{}", token.text()), below)
        .layer(middleware::from_fn_with_state(token.clone(), guard::guard))
}

/// Columns that the page asks for once.
fn whole(columns: fn(&Page, Frame<'_>) -> Columns) -> MethodRouter<Arc<Page>> {
    get(move |State(page): Shared, Query(given): Given, headers: HeaderMap| async move {
        columns_of(columns(&page, page.frame(&given)), &headers)
    })
}

/// A whole number of the request.
fn integer(given: &HashMap<String, String>, name: &str) -> Result<i64, Refused> {
    let number = given.get(name).and_then(|number| number.parse().ok());
    number.ok_or_else(|| Refused::of(&format!("`{name}` is a whole number")))
}

async fn tile(State(page): Shared, Query(given): Given, headers: HeaderMap) -> Result<Response, Refused> {
    let (from, to, bins) = (integer(&given, "from")?, integer(&given, "to")?, integer(&given, "bins")?);
    let lanes = given
        .get("lanes")
        .and_then(|lanes| tile::lanes_of(lanes))
        .ok_or_else(|| Refused::of("`lanes` is a list of numbers"))?;
    if to <= from || bins < 1 {
        return Err(Refused::of("the range is empty"));
    }
    let asked = tile::Asked { from, to, bins: usize::try_from(bins).unwrap_or(1), lanes };
    let cut = tokio::task::spawn_blocking(move || tile::cut(page.frame(&given), &asked));
    let cut = cut.await.map_err(|_| Refused::of("the tile could not be cut, which is a fault of tq"))??;
    let cut = cut.ok_or_else(|| Refused::of("the range is too long"))?;
    Ok(columns_of(cut.columns, &headers))
}

async fn counter(State(page): Shared, Query(given): Given, headers: HeaderMap) -> Result<Response, Refused> {
    let (from, to, bins) = (integer(&given, "from")?, integer(&given, "to")?, integer(&given, "bins")?);
    if to <= from || bins < 1 {
        return Err(Refused::of("the range is empty"));
    }
    let number = usize::try_from(integer(&given, "number")?).unwrap_or(usize::MAX);
    let bins = usize::try_from(bins).unwrap_or(1).min(kept::BINS_MAX);
    let columns = page.counters.tile(page.frame(&given), number, from, to, bins);
    Ok(columns_of(columns.ok_or_else(|| Refused::of("there is no such counter, or the range is too long"))?, &headers))
}

async fn task(State(page): Shared, Query(given): Given) -> Result<Response, Refused> {
    let task = integer(&given, "task")?;
    let shared = Arc::clone(&page);
    let found = page.asked.answer(move |connection| answers::task(connection, shared.frame(&given), task)).await?;
    found
        .as_ref()
        .map(json_of)
        .ok_or_else(|| Refused { status: StatusCode::NOT_FOUND, ..Refused::of("there is no such task") })
}

async fn search(State(page): Shared, Query(given): Given, headers: HeaderMap) -> Result<Response, Refused> {
    let pattern = given.get("pattern").cloned().unwrap_or_default();
    let shared = Arc::clone(&page);
    let hits = page.asked.answer(move |connection| answers::search(connection, shared.frame(&given), &pattern)).await?;
    Ok(columns_of(hits, &headers))
}

async fn layer(State(page): Shared, Query(given): Given, headers: HeaderMap) -> Result<Response, Refused> {
    let name = given.get("name").map_or("", String::as_str);
    let (title, sql) = answers::layer_of(name).ok_or_else(|| Refused::of(&format!("there is no layer `{name}`")))?;
    spans(&page, given, title.to_owned(), sql.to_owned(), &headers).await
}

async fn layer_of_sql(
    State(page): Shared,
    Query(given): Given,
    headers: HeaderMap,
    text: String,
) -> Result<Response, Refused> {
    spans(&page, given, "SQL".to_owned(), text, &headers).await
}

async fn spans(
    page: &Arc<Page>,
    given: HashMap<String, String>,
    title: String,
    sql: String,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    let shared = Arc::clone(page);
    let spans =
        page.asked.answer(move |connection| answers::layer(connection, shared.frame(&given), &title, &sql)).await?;
    Ok(columns_of(spans, headers))
}

async fn rows(State(page): Shared, Query(given): Given, headers: HeaderMap, text: String) -> Result<Response, Refused> {
    let asked = page.of_range(&given).await?;
    Ok(columns_of(asked.answer(move |connection| answers::rows(connection, &text)).await?, &headers))
}

/// The whole answer as a file, which waits on disk until it is sent.
async fn download(State(page): Shared, Query(given): Given, format: Format) -> Result<Response, Refused> {
    let text = given.get("sql").cloned().ok_or_else(|| Refused::of("`sql` is the statement"))?;
    let asked = page.of_range(&given).await?;
    let answered = asked.answer(move |connection| {
        let mut file = tempfile::tempfile()?;
        let look = Look::plain(connection.session().tick());
        let writer = Box::new(std::io::BufWriter::new(file.try_clone()?));
        let mut output = output::create(format, writer, &look, None, Picture::default());
        for statement in &sql::parse(&text)? {
            connection.run(statement, &Params::new(), output.as_mut())?;
        }
        output.close()?;
        drop(output);
        file.rewind()?;
        Ok(file)
    });
    let file = answered.await?;
    let length = file.metadata().map_err(Failure::from)?.len();
    let name = format!("attachment; filename=\"answer.{}\"", format.name());
    let pieces = futures::stream::unfold(tokio::fs::File::from_std(file), |mut file| async move {
        let mut piece = vec![0; 1 << 16];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(length) => {
                piece.truncate(length);
                Some((Ok(piece), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    });
    let headers = [(CONTENT_DISPOSITION, name), (CONTENT_LENGTH, length.to_string())];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

async fn queries(State(page): Shared) -> Result<Response, Refused> {
    if let Some(known) = page.queries.get() {
        return Ok(json_of(known));
    }
    let shared = Arc::clone(&page);
    let all = page.asked.answer(move |connection| answers::queries(connection, &shared.library)).await?;
    Ok(json_of(page.queries.get_or_init(|| all)))
}

/// How a parameter of a saved query begins in a request.
const PARAM: &str = "param.";

async fn saved(State(page): Shared, Query(given): Given) -> Result<Response, Refused> {
    let name = given.get("name").cloned().ok_or_else(|| Refused::of("`name` is that of a saved query"))?;
    let asked = page.of_range(&given).await?;
    let shared = Arc::clone(&page);
    let values = given.into_iter().filter_map(|(key, value)| Some((key.strip_prefix(PARAM)?.to_owned(), value)));
    let values: Vec<(String, String)> = values.collect();
    Ok(json_of(&asked.answer(move |connection| answers::saved(connection, &shared.library, &name, &values)).await?))
}

impl Page {
    /// How a request wants instants.
    fn frame(&self, given: &HashMap<String, String>) -> Frame<'_> {
        Frame::of(&self.model, given.get("aligned").is_some_and(|aligned| aligned == "1"))
    }

    /// Who answers about the range of a request: a slice that is not the last one is cut from what was read.
    async fn of_range(self: &Arc<Self>, given: &HashMap<String, String>) -> Result<Arc<Asked>, Refused> {
        if !given.contains_key("from") && !given.contains_key("to") {
            return Ok(Arc::clone(&self.asked));
        }
        let (from, to) = (integer(given, "from")?, integer(given, "to")?);
        if let Some(known) = self.known_part(from, to) {
            return Ok(known);
        }
        if to <= from {
            return Err(Refused::of("the range is empty"));
        }
        // Gone when the request is: nobody waits for its range any more.
        let waits = Arc::new(());
        let (page, waiting) = (Arc::clone(self), Arc::downgrade(&waits));
        let cut = tokio::task::spawn_blocking(move || {
            let whole = page.whole.lock().unwrap_or_else(PoisonError::into_inner);
            // Another request may have cut it meanwhile.
            if let Some(known) = page.known_part(from, to) {
                return Ok(known);
            }
            if waiting.strong_count() == 0 {
                return Err(Failure::Interrupted);
            }
            let asked = Arc::new(Asked::of(&whole.cut(Slice { from: Some(from), to: Some(to) })?)?);
            if let Ok(mut last) = page.part.lock() {
                *last = Some(Part { from, to, asked: Arc::clone(&asked) });
            }
            Ok(asked)
        });
        let cut = cut.await;
        drop(waits);
        Ok(cut.map_err(|_| Refused::of("the range could not be cut, which is a fault of tq"))??)
    }

    /// Who answers about a range, where it was asked about last.
    fn known_part(&self, from: i64, to: i64) -> Option<Arc<Asked>> {
        let last = self.part.lock().ok()?;
        let part = last.as_ref().filter(|part| (part.from, part.to) == (from, to))?;
        Some(Arc::clone(&part.asked))
    }
}

fn json_of(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Bytes from which on it pays to make fewer of them.
const WORTH_PACKING: usize = 1 << 10;

fn columns_of(columns: Columns, headers: &HeaderMap) -> Response {
    const KIND: &str = "application/octet-stream";
    let bytes = columns.finish();
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    if bytes.len() < WORTH_PACKING || !accepted.split(',').any(|one| one.trim().starts_with("gzip")) {
        return ([(CONTENT_TYPE, KIND)], bytes).into_response();
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::with_capacity(bytes.len() / 2), flate2::Compression::fast());
    match packed.write_all(&bytes).and_then(|()| packed.finish()) {
        Ok(packed) => ([(CONTENT_TYPE, KIND), (CONTENT_ENCODING, "gzip")], packed).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A request that is not answered: what the page shows.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    body: Value,
}

impl Refused {
    fn of(message: &str) -> Refused {
        Refused { status: StatusCode::BAD_REQUEST, body: json!({"message": message}) }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        let problem = match failure {
            Failure::Told(problem) => *problem,
            Failure::Interrupted => Problem::new("the question was given up"),
            _ => Problem::internal("no answer"),
        };
        let hint = (!problem.hints.is_empty()).then(|| problem.hints.join("; "));
        let place = problem.excerpt.as_ref().map(|excerpt| (excerpt.line_number, excerpt.column));
        let (line, column) = place.unzip();
        Refused {
            status: StatusCode::BAD_REQUEST,
            body: json!({"message": problem.message, "hint": hint, "line": line, "column": column}),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, json_of(&self.body)).into_response()
    }
}
