//! Renders questions as markdown: sentences, tables, pictures. What cannot be answered is left out, and the reason is
//! recorded.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use tq_engine::queries::SavedQuery;
use tq_udfs::ticks::time_text;

use super::template::{Block, Part, Question};
use crate::charts::{Names, Tells, totals_of_work};
use crate::connection::{Connection, Params};
use crate::errors::queries::needs_in_words;
use crate::errors::{Failure, Problem};
use crate::output::Picture;
use crate::output::cells::Kind;
use crate::output::markdown::{self, escape, escape_line};
use crate::pictures;
use crate::text::visible::{is_hidden, visible_lines};
use crate::text::words::more_rows;

/// Rows of a table; more are counted.
const ROWS_SHOWN: usize = 20;
/// Of a table whose rows belong together, such as the parts of each rank.
const ROWS_OF_WHOLE: usize = 96;
/// Stands in place of a table without rows.
const NO_ROWS: &str = "*No rows.*";
/// Sentences of a block of facts.
const FACTS: usize = 3;

/// A page: its markdown, in which [`address`] stands for each picture.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) pictures: Vec<Drawn>,
    /// Sections that were left out, and why.
    pub(crate) left_out: Vec<(String, String)>,
    /// Questions that took too long or too much memory: their sections say so.
    pub(crate) unanswered: Vec<Problem>,
}

/// A picture of the page.
pub(crate) struct Drawn {
    /// A word for its file.
    pub(crate) name: String,
    pub(crate) svg: String,
}

/// What became of a part.
enum Piece {
    Heading(usize, String),
    Text(String),
    Answer(String),
    LeftOut(String),
}

/// The address of a picture in the text of a page, until it has a real one. The control characters around it make it one that
/// neither a name of a trace nor a template can spell: there they are shown as escapes.
pub(crate) fn address(number: usize) -> String {
    format!("\u{1}tq-picture:{number}\u{1}")
}

/// Runs all queries of a page. Without pictures, rows are shown where a chart would be.
pub(crate) fn page(connection: &mut Connection, parts: &[Part], with_pictures: bool) -> Result<Page, Failure> {
    connection.tell_notes_once();
    let picture = pictures::of_session(connection)?;
    label_tasks(connection, &picture.names)?;
    if with_pictures {
        begin_with_hues(connection, &picture.names)?;
    }
    let opened = opened(connection)?;
    let mut renderer = Renderer {
        picture,
        connection,
        opened,
        with_pictures,
        pictures: Vec::new(),
        asked: Vec::new(),
        unanswered: Vec::new(),
    };
    let mut pieces = Vec::new();
    let mut slice = slice_in_words(renderer.connection);
    for part in parts {
        pieces.push(match part {
            Part::Heading(level, line) => Piece::Heading(*level, line.clone()),
            Part::Text(text) => Piece::Text(text.clone()),
            Part::Block(block) => renderer.within_limits(block)?,
        });
        // Below the title: all figures of the page are those of the slice.
        pieces.extend(slice.take().map(Piece::Text));
    }
    // Once, and in the words of the template only: a task may be called `{{runs}}`.
    for piece in &mut pieces {
        if let Piece::Heading(_, text) | Piece::Text(text) = piece {
            *text = renderer.filled_in(&visible_lines(text));
        }
    }
    let (text, left_out) = put_together(&pieces);
    Ok(Page { text, pictures: renderer.pictures, left_out, unanswered: renderer.unanswered })
}

/// Labels for the tasks of all runs, given together before anything is shown: none is one that another of them could have as well
/// (`Kernel2` of three kernels that differ in their arguments alone), whichever of them the page shows.
pub(crate) fn label_tasks(connection: &mut Connection, page: &Names) -> Result<(), Failure> {
    // Those first that are shortened.
    const NAMES: &str = "SELECT name, length(name) > 36 AS is_long, count(*) AS tasks FROM program_tasks WHERE name <> '' GROUP BY name \
         ORDER BY is_long DESC, tasks DESC, name LIMIT 2000";
    let names = cast(connection.collect(NAMES, &Params::new())?.column(0), &DataType::Utf8)?;
    page.labels(names.as_string::<i32>().iter().flatten());
    Ok(())
}

/// The names that ran longest have the same hues in all pictures, whichever of them comes first: those of all tasks, since pictures show
/// what transfers and waits as well. Tasks without times have none, and no note says so here: a graph of tasks need not have any.
pub(crate) fn begin_with_hues(connection: &mut Connection, page: &Names) -> Result<(), Failure> {
    const LONGEST: &str = "SELECT longest.name, total, kinds.role, kinds.kind \
         FROM (SELECT name, CAST(sum(self_time) AS DOUBLE) AS total FROM self_time((SELECT * FROM program_tasks WHERE start IS NOT NULL)) \
           GROUP BY name ORDER BY total DESC, name LIMIT 2000) longest \
         JOIN (SELECT name, min(role) AS role, min(kind) AS kind FROM program_tasks WHERE start IS NOT NULL GROUP BY name) kinds \
           ON kinds.name = longest.name ORDER BY total DESC, longest.name";
    let rows = match connection.collect(LONGEST, &Params::new()) {
        Ok(rows) => rows,
        // What is wrong, or beyond a limit, is told where the page asks for it.
        Err(Failure::Told(_)) => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let words = |column: usize| -> Result<Vec<String>, Failure> {
        let words = cast(rows.column(column), &DataType::Utf8)?;
        Ok(words.as_string::<i32>().iter().map(|word| word.unwrap_or_default().to_owned()).collect())
    };
    let (names, roles, kinds) = (words(0)?, words(2)?, words(3)?);
    let totals = cast(rows.column(1), &DataType::Float64)?;
    let totals = totals.as_primitive::<Float64Type>().iter().map(|total| total.unwrap_or_default() as i128);
    let tells: Vec<Tells> =
        names.iter().zip(&roles).zip(&kinds).map(|((name, role), kind)| Tells::of(role, kind, name)).collect();
    let totals = totals_of_work(&totals.collect::<Vec<_>>(), &tells);
    let longest: Vec<(&str, i128)> =
        names.iter().map(String::as_str).zip(totals).filter(|(_, total)| *total > 0).collect();
    page.begin_with(&longest);
    Ok(())
}

/// What was opened, as people name it: the studies, where all runs are executions of some, else the runs.
fn opened(connection: &mut Connection) -> Result<Vec<String>, Failure> {
    const STUDIES: &str = "SELECT study FROM runs GROUP BY study ORDER BY min(run_number)";
    let studies = cast(connection.collect(STUDIES, &Params::new())?.column(0), &DataType::Utf8)?;
    let studies: Option<Vec<String>> =
        studies.as_string::<i32>().iter().map(|study| study.map(str::to_owned)).collect();
    let runs = || connection.session().runs().iter().map(|run| run.name.clone()).collect();
    Ok(studies.filter(|studies| !studies.is_empty()).unwrap_or_else(runs))
}

/// What `--from` and `--to` have left of the traces.
fn slice_in_words(connection: &Connection) -> Option<String> {
    let (slice, tick) = (connection.session().slice(), connection.session().tick());
    let time = |ticks: i64| time_text(ticks, tick);
    let stretch = match (slice.from.map(time), slice.to.map(time)) {
        (None, None) => return None,
        (Some(from), None) => format!("from {from} on"),
        (None, Some(to)) => format!("until {to}"),
        (Some(from), Some(to)) => format!("from {from} to {to}"),
    };
    Some(format!(
        "Only the time {stretch} is here: tasks that stick out of it are cut at its borders, and what else touches it (messages, links) is whole.\n\n"
    ))
}

/// Leaves out the sections in which everything that was asked was left out.
fn put_together(pieces: &[Piece]) -> (String, Vec<(String, String)>) {
    let mut text = String::new();
    let mut left_out = Vec::new();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        at += 1;
        match piece {
            Piece::Heading(level, line) => {
                let below = section(&pieces[at..], *level);
                match reason(below) {
                    Some(reason) => {
                        left_out.push((line.trim_start_matches(['#', ' ']).to_owned(), reason.to_owned()));
                        at += below.len();
                    }
                    None => add(&mut text, line),
                }
            }
            Piece::Text(lines) if matches!(pieces.get(at), Some(Piece::LeftOut(_))) => {
                add(&mut text, unannounced(lines));
            }
            Piece::Text(lines) | Piece::Answer(lines) => add(&mut text, lines),
            Piece::LeftOut(_) => {}
        }
    }
    (text.trim_end().to_owned() + "\n", left_out)
}

/// A text without its last paragraph, where that ends with a colon: it announces what was left out.
fn unannounced(text: &str) -> &str {
    let text = text.trim_end();
    match text.ends_with(':') {
        true => text.rfind("\n\n").map_or("", |end| &text[..end]),
        false => text,
    }
}

/// One blank line between parts, whatever was left out between them.
fn add(text: &mut String, part: &str) {
    let part = part.trim_matches('\n');
    if !part.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part);
        text.push('\n');
    }
}

/// The pieces up to the next heading of this level or a higher one.
fn section(pieces: &[Piece], level: usize) -> &[Piece] {
    let ends = |piece: &Piece| matches!(piece, Piece::Heading(other, _) if *other <= level);
    &pieces[..pieces.iter().position(ends).unwrap_or(pieces.len())]
}

/// Why a section is left out: something was asked, and nothing was answered.
fn reason(pieces: &[Piece]) -> Option<&str> {
    let answered = pieces.iter().any(|piece| matches!(piece, Piece::Answer(_)));
    let reason = pieces.iter().find_map(|piece| match piece {
        Piece::LeftOut(reason) => Some(reason.as_str()),
        _ => None,
    });
    reason.filter(|_| !answered)
}

struct Renderer<'a> {
    connection: &'a mut Connection,
    /// The names of the studies, else of the runs.
    opened: Vec<String>,
    /// Runs and the order of locations.
    picture: Picture,
    with_pictures: bool,
    pictures: Vec<Drawn>,
    /// The names of the saved queries that were answered.
    asked: Vec<String>,
    unanswered: Vec<Problem>,
}

/// What stands in the place of an answer that needed more than it may.
fn not_answered(problem: &Problem) -> String {
    format!("*Not answered: {}.*", escape(&problem.message))
}

impl Renderer<'_> {
    /// The answer of a block. One that takes too long or too much memory is no reason to lose the rest of the page.
    fn within_limits(&mut self, block: &Block) -> Result<Piece, Failure> {
        let pictures = self.pictures.len();
        match self.block(block) {
            Err(Failure::Told(problem)) if problem.is_beyond_limit => {
                // No text refers to pictures that came before.
                self.pictures.truncate(pictures);
                let piece = Piece::Answer(not_answered(&problem));
                self.unanswered.push(*problem);
                Ok(piece)
            }
            other => other,
        }
    }

    fn block(&mut self, block: &Block) -> Result<Piece, Failure> {
        if block.facts {
            return self.facts(&block.questions);
        }
        let Some(question) = block.questions.first() else { return Ok(Piece::Text(String::new())) };
        let unmet = self.connection.unmet(&question.query)?;
        if !unmet.is_empty() {
            return Ok(Piece::LeftOut(format!("it needs {}", needs_in_words(&unmet))));
        }
        let params = self.params(question)?;
        let query = &question.query;
        let mut text = String::new();
        let has_chart = !query.header.charts.is_empty();
        // Without pictures, a section that shows both has its table already, and a timeline has no table worth reading.
        let is_timeline = query.header.charts.iter().any(|chart| chart.kind == "gantt");
        if !self.with_pictures && is_timeline && !block.table {
            return Ok(Piece::Text(String::new()));
        }
        let mut has_picture = has_chart && !block.table && self.with_pictures;
        if has_picture {
            let drawn = pictures::of_query(self.connection, query, &params, &self.picture_of(query))?;
            if drawn.is_empty() && block.if_rows {
                return Ok(Piece::LeftOut("there is nothing to show".to_owned()));
            }
            if drawn.is_empty() && !block.both {
                add(&mut text, NO_ROWS);
            }
            has_picture = drawn.iter().all(|drawn| !drawn.is_one_bar);
            for pictures::Drawn { svg, .. } in drawn.into_iter().filter(|_| has_picture) {
                self.pictures
                    .push(Drawn { name: if query.name.is_empty() { "picture" } else { &query.name }.to_owned(), svg });
                let title = if query.title().is_empty() { &self.picture.title } else { query.title() };
                add(&mut text, &format!("![{}]({})", escape(title), address(self.pictures.len() - 1)));
            }
        }
        if block.both || !has_picture {
            let answer = self.answer(query, &params)?;
            if block.if_rows && answer.num_rows() == 0 {
                return Ok(Piece::LeftOut("there is nothing to show".to_owned()));
            }
            let is_cut = query.statement.is_cut_at(answer.num_rows(), &params);
            add(
                &mut text,
                &self.table(&answer, is_cut, question, if block.whole { ROWS_OF_WHOLE } else { ROWS_SHOWN })?,
            );
        }
        self.note(question);
        Ok(Piece::Answer(text))
    }

    fn picture_of(&self, query: &SavedQuery) -> Picture {
        let title = if query.title().is_empty() { self.picture.title.clone() } else { query.title().to_owned() };
        Picture { title, ..self.picture.clone() }
    }

    fn params(&self, question: &Question) -> Result<Params, Failure> {
        Ok(question.query.bind(&question.given, self.connection.session().tick())?)
    }

    fn answer(&mut self, query: &SavedQuery, params: &Params) -> Result<RecordBatch, Failure> {
        let placed = |failure: Failure| failure.in_file(&query.file(), Some(query.statement.line));
        self.connection.answer(&query.statement, params).map_err(placed)
    }

    fn note(&mut self, question: &Question) {
        if question.is_named && !self.asked.contains(&question.query.name) {
            self.asked.push(question.query.name.clone());
        }
    }

    /// The first sentences of several queries, as a list. A query that cannot be answered leaves its place to the next. The last
    /// place is kept for what to look at next, where a query (`…-next`) knows it: what several runs are about must not push it out.
    fn facts(&mut self, questions: &[Question]) -> Result<Piece, Failure> {
        let (mut facts, mut unanswered): (Vec<String>, Vec<Problem>) = Default::default();
        let says_next = |facts: &[String]| facts.iter().any(|fact| fact.starts_with("Look next"));
        for question in questions {
            let is_next = question.query.name.ends_with("-next");
            if facts.len() >= FACTS && !is_next {
                continue;
            }
            if facts.len() >= FACTS && says_next(&facts) {
                break;
            }
            if !self.connection.unmet(&question.query)?.is_empty() {
                continue;
            }
            let params = self.params(question)?;
            let answer = match self.answer(&question.query, &params) {
                Err(Failure::Told(problem)) if problem.is_beyond_limit => {
                    unanswered.push(*problem);
                    continue;
                }
                answer => answer?,
            };
            let sentences = self.sentences(&answer)?;
            if sentences.is_empty() {
                continue;
            }
            self.note(question);
            if is_next && !says_next(&facts) {
                facts.truncate(FACTS - 1);
            }
            facts.extend(sentences);
            facts.truncate(FACTS);
        }
        if facts.is_empty() {
            return match unanswered.into_iter().next() {
                Some(problem) => Err(problem.into()),
                None => Ok(Piece::LeftOut("there is nothing to say".to_owned())),
            };
        }
        let mut text = String::new();
        for line in facts.iter().map(|fact| escape_line(fact)).chain(unanswered.iter().map(not_answered)) {
            let _ = writeln!(text, "- {line}");
        }
        self.unanswered.append(&mut unanswered);
        Ok(Piece::Answer(text))
    }

    /// The first rows as a table, and how many more there are, where the answer itself is not cut.
    fn table(&self, answer: &RecordBatch, is_cut: bool, question: &Question, most: usize) -> Result<String, Failure> {
        if answer.num_rows() == 0 {
            return Ok(NO_ROWS.to_owned());
        }
        let mut shown = answer.slice(0, answer.num_rows().min(most));
        // In a page about one run, its name in every row says nothing.
        if self.connection.session().runs().len() == 1
            && shown.num_columns() > 1
            && let Ok(run) = shown.schema().index_of("run")
        {
            shown.remove_column(run);
        }
        let shown = with_labels(&self.picture.names, &shown)?;
        let mut text = markdown::table(&shown, self.connection.session().tick())?;
        if answer.num_rows() > shown.num_rows() {
            let more = more_rows(answer.num_rows() - shown.num_rows(), is_cut);
            let _ = match question.is_named {
                true => writeln!(text, "\n… and {more}: `tq query TRACE {}`.", question.query.name),
                false => writeln!(text, "\n… and {more}."),
            };
        }
        Ok(text)
    }

    /// The texts of the first column, without empty ones. Further columns are names in them, which become what people read.
    fn sentences(&self, answer: &RecordBatch) -> Result<Vec<String>, Failure> {
        if answer.num_columns() == 0 {
            return Ok(Vec::new());
        }
        let columns = answer.columns().iter().map(|column| cast(column, &DataType::Utf8));
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        let text = |column: usize, row: usize| {
            let texts = columns[column].as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row)).filter(|text| !text.is_empty())
        };
        let sentence = |row: usize| {
            let names = (1..columns.len()).filter_map(|column| text(column, row));
            let labels = self.picture.names.labels(names.clone());
            let named = |sentence: String, (name, label): (&str, String)| sentence.replace(name, &label);
            text(0, row).map(|sentence| names.zip(labels).fold(sentence.to_owned(), named))
        };
        Ok((0..answer.num_rows()).filter_map(sentence).collect())
    }

    /// What `{{…}}` stands for.
    fn filled_in(&self, text: &str) -> String {
        let runs: Vec<String> = self.opened.iter().map(|name| escape(name)).collect();
        let asked: Vec<String> = self.asked.iter().map(|name| code(name)).collect();
        let shown = match runs.as_slice() {
            [first, .., last] if runs.len() > 3 => format!("{} runs, {first} … {last}", runs.len()),
            runs => runs.join(", "),
        };
        let with_queries: Vec<String> =
            text.split("{{runs}}").map(|part| part.replace("{{queries}}", &asked.join(", "))).collect();
        with_queries.join(&shown)
    }
}

/// The rows with names of tasks as people read them.
pub(crate) fn with_labels(names: &Names, rows: &RecordBatch) -> Result<RecordBatch, Failure> {
    let mut columns = rows.columns().to_vec();
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    for (field, column) in fields.iter_mut().zip(&mut columns) {
        let is_name = |part| part == "name" || part == "range";
        let is_change = field.name() == "what";
        if Kind::of(field) != Kind::Text || !(is_change || field.name().split('_').any(is_name)) {
            continue;
        }
        let texts = cast(column, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let read = texts.iter().flatten();
        let labels = if is_change { names.changes(read) } else { names.labels(read) };
        let mut labels = labels.into_iter();
        let labels: StringArray = texts.iter().map(|text| text.and_then(|_| labels.next())).collect();
        *field = field.clone().with_data_type(DataType::Utf8);
        *column = Arc::new(labels);
    }
    let schema = Schema::new_with_metadata(fields, rows.schema().metadata().clone());
    Ok(RecordBatch::try_new_with_options(Arc::new(schema), columns, &options(rows))?)
}

/// A name as code; one that would end the code is text.
fn code(name: &str) -> String {
    if name.contains(|c: char| c == '`' || is_hidden(c)) { escape(name) } else { format!("`{name}`") }
}

fn options(rows: &RecordBatch) -> RecordBatchOptions {
    RecordBatchOptions::new().with_row_count(Some(rows.num_rows()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_without_answers_are_left_out() {
        let heading = |level: usize, text: &str| Piece::Heading(level, format!("{} {text}", "#".repeat(level)));
        let text = |text: &str| Piece::Text(format!("\n{text}\n\n"));
        let answer = |text: &str| Piece::Answer(text.to_owned());
        let left_out = || Piece::LeftOut("it needs messages".to_owned());
        let pieces = [
            heading(1, "page"),
            answer("facts"),
            heading(2, "gone"),
            text("about it"),
            left_out(),
            heading(3, "gone with it"),
            left_out(),
            heading(2, "stays"),
            left_out(),
            heading(3, "because of this"),
            answer("rows"),
            heading(2, "only prose"),
            text("stays"),
        ];
        let (text, left_out) = put_together(&pieces);
        assert_eq!(text, "# page\n\nfacts\n\n## stays\n\n### because of this\n\nrows\n\n## only prose\n\nstays\n");
        assert_eq!(left_out, [("gone".to_owned(), "it needs messages".to_owned())]);
    }
}
