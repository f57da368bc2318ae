//! Questions become markdown: sentences, tables, pictures. What cannot be answered leaves no trace but a reason.

use std::fmt::Write;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use tq_engine::queries::SavedQuery;
use tq_udfs::ticks::time_text;

use super::template::{Block, Part, Question};
use crate::connection::{Connection, Params};
use crate::errors::queries::needs_in_words;
use crate::errors::{Failure, Problem};
use crate::output::Picture;
use crate::output::markdown::{self, escape, escape_line};
use crate::pictures;
use crate::text::visible::{is_hidden, visible_lines};
use crate::text::words::counted;

/// Rows of a table; more are counted.
const ROWS_SHOWN: usize = 15;
/// Sentences of a block of facts.
const FACTS: usize = 3;

/// A page: its markdown, in which [`address`] stands for each picture.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) pictures: Vec<Drawn>,
    /// Sections that were left out, and why.
    pub(super) left_out: Vec<(String, String)>,
    /// Questions that took too long: their sections say so.
    pub(super) late: Vec<Problem>,
}

/// A picture of the page.
pub(super) struct Drawn {
    /// A word for its file.
    pub(super) name: String,
    pub(super) svg: String,
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
pub(super) fn address(number: usize) -> String {
    format!("\u{1}tq-picture:{number}\u{1}")
}

/// Asks everything. Without pictures, rows are shown where a chart would be.
pub(super) fn page(connection: &mut Connection, parts: &[Part], with_pictures: bool) -> Result<Page, Failure> {
    connection.tell_notes_once();
    let picture = pictures::of_session(connection)?;
    let mut renderer =
        Renderer { picture, connection, with_pictures, pictures: Vec::new(), asked: Vec::new(), late: Vec::new() };
    let mut pieces = Vec::new();
    let mut slice = slice_in_words(renderer.connection);
    for part in parts {
        pieces.push(match part {
            Part::Heading(level, line) => Piece::Heading(*level, line.clone()),
            Part::Text(text) => Piece::Text(text.clone()),
            Part::Block(block) => renderer.in_time(block)?,
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
    Ok(Page { text, pictures: renderer.pictures, left_out, late: renderer.late })
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
        "Only what touches the time {stretch} is here; what sticks out of it counts with its whole length.\n\n"
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
            Piece::Text(lines) | Piece::Answer(lines) => add(&mut text, lines),
            Piece::LeftOut(_) => {}
        }
    }
    (text.trim_end().to_owned() + "\n", left_out)
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
    /// Runs and the order of locations.
    picture: Picture,
    with_pictures: bool,
    pictures: Vec<Drawn>,
    /// The names of the saved queries that were answered.
    asked: Vec<String>,
    late: Vec<Problem>,
}

impl Renderer<'_> {
    /// The answer of a block. One that takes too long is no reason to lose the rest of the page.
    fn in_time(&mut self, block: &Block) -> Result<Piece, Failure> {
        let pictures = self.pictures.len();
        match self.block(block) {
            Err(Failure::Told(problem)) if problem.is_late => {
                // No text refers to pictures that came before it was late.
                self.pictures.truncate(pictures);
                let piece = Piece::Answer(format!("*Not answered: {}.*", escape(&problem.message)));
                self.late.push(*problem);
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
        if has_chart && !block.table && self.with_pictures {
            for svg in pictures::of_query(self.connection, query, &params, &self.picture_of(query))? {
                self.pictures
                    .push(Drawn { name: if query.name.is_empty() { "picture" } else { &query.name }.to_owned(), svg });
                let title = if query.title().is_empty() { &self.picture.title } else { query.title() };
                add(&mut text, &format!("![{}]({})", escape(title), address(self.pictures.len() - 1)));
            }
        }
        if block.table || block.both || !has_chart || !self.with_pictures {
            let answer = self.answer(query, &params)?;
            if block.if_rows && answer.num_rows() == 0 {
                return Ok(Piece::LeftOut("there is nothing to show".to_owned()));
            }
            add(&mut text, &self.table(&answer)?);
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

    /// The first sentences of several queries, as a list. A query that cannot be answered leaves its place to the next.
    fn facts(&mut self, questions: &[Question]) -> Result<Piece, Failure> {
        let mut facts = Vec::new();
        for question in questions {
            if facts.len() >= FACTS {
                break;
            }
            if !self.connection.unmet(&question.query)?.is_empty() {
                continue;
            }
            let params = self.params(question)?;
            let answer = self.answer(&question.query, &params)?;
            let sentences = sentences(&answer)?;
            if !sentences.is_empty() {
                self.note(question);
            }
            facts.extend(sentences);
        }
        facts.truncate(FACTS);
        if facts.is_empty() {
            return Ok(Piece::LeftOut("there is nothing to say".to_owned()));
        }
        Ok(Piece::Answer(facts.iter().fold(String::new(), |mut text, fact| {
            let _ = writeln!(text, "- {}", escape_line(fact));
            text
        })))
    }

    fn table(&self, answer: &RecordBatch) -> Result<String, Failure> {
        if answer.num_rows() == 0 {
            return Ok("*No rows.*".to_owned());
        }
        let mut shown = answer.slice(0, answer.num_rows().min(ROWS_SHOWN));
        // In a page about one run, its name in every row says nothing.
        if self.connection.session().runs().len() == 1
            && shown.num_columns() > 1
            && let Ok(run) = shown.schema().index_of("run")
        {
            shown.remove_column(run);
        }
        let mut text = markdown::table(&shown, self.connection.session().tick())?;
        if answer.num_rows() > shown.num_rows() {
            let _ = writeln!(text, "\n… and {}.", counted(answer.num_rows() - shown.num_rows(), "more row"));
        }
        Ok(text)
    }

    /// What `{{…}}` stands for.
    fn filled_in(&self, text: &str) -> String {
        let runs: Vec<String> = self.connection.session().runs().iter().map(|run| escape(&run.name)).collect();
        let asked: Vec<String> = self.asked.iter().map(|name| code(name)).collect();
        let shown = match runs.as_slice() {
            [first, .., last] if runs.len() > 6 => format!("{} runs, {first} … {last}", runs.len()),
            runs => runs.join(", "),
        };
        let with_queries: Vec<String> =
            text.split("{{runs}}").map(|part| part.replace("{{queries}}", &asked.join(", "))).collect();
        with_queries.join(&shown)
    }
}

/// A name as code; one that would end the code is text.
fn code(name: &str) -> String {
    if name.contains(|c: char| c == '`' || is_hidden(c)) { escape(name) } else { format!("`{name}`") }
}

/// The texts of the first column, without empty ones.
fn sentences(answer: &RecordBatch) -> Result<Vec<String>, Failure> {
    if answer.num_columns() == 0 {
        return Ok(Vec::new());
    }
    let texts = cast(answer.column(0), &DataType::Utf8)?;
    Ok(texts.as_string::<i32>().iter().flatten().filter(|text| !text.is_empty()).map(str::to_owned).collect())
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
