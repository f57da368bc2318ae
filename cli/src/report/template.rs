//! Templates: markdown whose fenced `sql` blocks are questions.
//!
//! ````text
//! # {{runs}}
//!
//! ```sql facts                  sentences: a query a line, the first three sentences are taken
//! facts-how-full
//! facts-path
//! ```
//!
//! ## Who idles
//!
//! ```sql if-rows                a saved query with parameters; without rows its section is left out
//! -- needs: no executions       what it needs here besides what the saved query says
//! idle-gaps limit=5
//! ```
//!
//! ```sql table                  SQL, with a header if it likes; `table` shows rows where a chart would be drawn
//! -- needs: messages
//! SELECT count(*) FROM messages
//! ```
//! ````
//!
//! A block whose `needs` are not met is left out, and so is a section in which nothing else was asked. Fences are backticks or
//! tildes, indented or not. Values with blanks stand in quotes: `name='two words'`.

use std::path::{Path, PathBuf};

use tq_engine::paths;
use tq_engine::queries::header::{Need, has_header};
use tq_engine::queries::{Library, Origin, SavedQuery};
use tq_udfs::ticks::Tick;

use crate::errors::{Failure, Problem, did_you_mean};
use crate::library;

/// The template that is built in.
pub(crate) const BUILT_IN: &str = include_str!("template.md");

/// Words behind `sql` in a fence.
const FLAGS: [&str; 5] = ["facts", "if-rows", "table", "both", "whole"];

/// What `{{…}}` may name: the runs of the page, and the saved queries that it asked.
const PLACEHOLDERS: [&str; 2] = ["runs", "queries"];

/// A part of a template.
#[derive(Debug)]
pub(crate) enum Part {
    /// A heading: its level and its line as written.
    Heading(usize, String),
    /// Lines of markdown as they are.
    Text(String),
    /// Questions.
    Block(Block),
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// What is asked, in order; one question unless the block is one of facts.
    pub(crate) questions: Vec<Question>,
    /// Sentences instead of a table.
    pub(crate) facts: bool,
    /// Left out without rows.
    pub(crate) if_rows: bool,
    /// Rows even where there is a chart, and whether the chart is there as well.
    pub(crate) table: bool,
    pub(crate) both: bool,
    /// More rows of a table: one for each device or rank and part.
    pub(crate) whole: bool,
}

/// A query and the values that it is asked with.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) query: SavedQuery,
    pub(crate) given: Vec<(String, String)>,
    /// Whether it is known by a name.
    pub(crate) is_named: bool,
}

/// The queries that a template asks.
pub(crate) fn queries(parts: &[Part]) -> impl Iterator<Item = &SavedQuery> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Block(block) => Some(block),
        _ => None,
    });
    blocks.flat_map(|block| &block.questions).map(|question| &question.query)
}

/// Blocks of questions, and placeholders, on one page.
const PARTS_MAX: usize = 1_000;

/// Reads a template.
pub(crate) fn parse(text: &str, file: &str, library: &Library) -> Result<Vec<Part>, Failure> {
    let (mut parts, mut blocks, mut placeholders) = (Vec::new(), 0, 0);
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let Some(fence) = Fence::of(line) else {
            let line = with_placeholders(line).map_err(|problem| placed(problem, file, number))?;
            placeholders += line.matches("{{").count();
            if placeholders > PARTS_MAX {
                return Err(placed(too_many("placeholders"), file, number));
            }
            match line.bytes().take_while(|&byte| byte == b'#').count() {
                level @ 1..=6 if line[level..].starts_with(' ') => parts.push(Part::Heading(level, line)),
                _ => push_text(&mut parts, &line),
            }
            continue;
        };
        let mut body = Vec::new();
        let closing = lines.by_ref().map(|(_, line)| line).find(|line| {
            let closes = fence.is_closed_by(line);
            if !closes {
                body.push(*line);
            }
            closes
        });
        let mut words = fence.info.split_whitespace();
        if !words.next().is_some_and(|language| language.eq_ignore_ascii_case("sql")) {
            for line in std::iter::once(line).chain(body).chain(closing) {
                push_text(&mut parts, line);
            }
            continue;
        }
        if closing.is_none() {
            return Err(placed(Problem::new("the block is not closed"), file, number));
        }
        let body: Vec<&str> = body.into_iter().map(|line| fence.unindented(line)).collect();
        blocks += 1;
        if blocks > PARTS_MAX {
            return Err(placed(too_many("blocks of questions"), file, number));
        }
        parts.push(Part::Block(block(&words.collect::<Vec<_>>(), &body, file, number, library)?));
    }
    Ok(parts)
}

fn push_text(parts: &mut Vec<Part>, line: &str) {
    if !matches!(parts.last(), Some(Part::Text(_))) {
        parts.push(Part::Text(String::new()));
    }
    if let Some(Part::Text(text)) = parts.last_mut() {
        text.push_str(line);
        text.push('\n');
    }
}

/// What opens a block, as CommonMark has it; indented as far as one likes, for the sake of lists.
struct Fence<'t> {
    indent: usize,
    mark: char,
    length: usize,
    /// What stands behind it.
    info: &'t str,
}

impl<'t> Fence<'t> {
    fn of(line: &'t str) -> Option<Fence<'t>> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        // ```code``` within a line is no fence.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Fence { indent: line.len() - text.len(), mark, length, info })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        text.len() >= self.length && text.chars().all(|c| c == self.mark)
    }

    /// A line of the block without the blanks that stand before the fence, too.
    fn unindented<'l>(&self, line: &'l str) -> &'l str {
        match line.get(..self.indent) {
            Some(blanks) if blanks.trim().is_empty() => &line[self.indent..],
            _ => line.trim_start(),
        }
    }
}

/// The line with its placeholders spelt in one way. What is no word in `{{…}}` belongs to another program.
fn with_placeholders(line: &str) -> Result<String, Problem> {
    let mut pieces = line.split("{{");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str("{{");
        let word = piece.split_once("}}").map(|(word, rest)| (word.trim(), rest));
        let is_word = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        match word.filter(|(word, _)| is_word(word)) {
            Some((word, rest)) if PLACEHOLDERS.contains(&word) => text.extend([word, "}}", rest]),
            Some((word, _)) => {
                let near = did_you_mean(word, PLACEHOLDERS);
                let known = PLACEHOLDERS.map(|name| format!("`{{{{{name}}}}}`"));
                return Err(Problem::new(format!("`{{{{{word}}}}}` is an unknown placeholder{near}"))
                    .hint(format!("known are {}", known.join(", "))));
            }
            None => text.push_str(piece),
        }
    }
    Ok(text)
}

fn too_many(what: &str) -> Problem {
    Problem::new(format!("the template has more than {PARTS_MAX} {what}"))
        .hint("several pages are read sooner than one of that length")
}

fn placed(problem: Problem, file: &str, line: usize) -> Failure {
    Failure::from(problem).in_file(file, Some(line as u64))
}

fn block(flags: &[&str], body: &[&str], file: &str, line: usize, library: &Library) -> Result<Block, Failure> {
    if let Some(unknown) = flags.iter().find(|flag| !FLAGS.contains(flag)) {
        let problem = Problem::new(format!("`{unknown}` has no meaning after `sql`{}", did_you_mean(unknown, FLAGS)))
            .hint(format!("known are {}", FLAGS.join(", ")));
        return Err(placed(problem, file, line));
    }
    let has = |flag| flags.contains(&flag);
    let asks = |line: &str| !line.trim().is_empty() && !line.starts_with("-- needs:");
    let questions = if has("facts") || body.iter().filter(|line| asks(line)).all(|line| is_call(line)) {
        let needs = needs(body, file, line)?;
        let calls = body.iter().enumerate().filter(|(_, line)| asks(line));
        let named = |(index, text): (usize, &&str)| {
            let mut question = named(text, library, file).map_err(|failure| match failure {
                Failure::Told(problem) if problem.place.is_none() => placed(*problem, file, line + 1 + index),
                other => other,
            })?;
            question.query.header.needs.extend_from_slice(&needs);
            Ok(question)
        };
        calls.map(named).collect::<Result<Vec<Question>, Failure>>()?
    } else {
        vec![written(&body.join("\n"), file, line)?]
    };
    match questions.len() {
        0 => Err(placed(
            Problem::new("the block has no query").hint("write the name of a saved query, or SQL"),
            file,
            line,
        )),
        2.. if !has("facts") => {
            let problem = Problem::new("the block has several queries").hint("give each a block of its own");
            Err(placed(problem, file, line))
        }
        _ => Ok(Block {
            questions,
            facts: has("facts"),
            if_rows: has("if-rows"),
            table: has("table"),
            both: has("both"),
            whole: has("whole"),
        }),
    }
}

/// What a block of calls needs besides what the called queries need.
fn needs(body: &[&str], file: &str, line: usize) -> Result<Vec<Need>, Failure> {
    let lines: Vec<&str> = body.iter().map(|line| if line.starts_with("-- needs:") { line } else { "" }).collect();
    let Some(first) = lines.iter().position(|line| !line.is_empty()) else { return Ok(Vec::new()) };
    let header = format!("{}{}\n--\nSELECT 1", "\n".repeat(line + first), lines[first]);
    if let Some(second) = lines.iter().skip(first + 1).position(|line| !line.is_empty()) {
        let problem = Problem::new("a block has one line of needs").hint("join them by commas");
        return Err(placed(problem, file, line + 2 + first + second));
    }
    Ok(SavedQuery::parse("", Origin::File(file.into()), &header)?.header.needs)
}

/// `name key=value …`: no statement of SQL looks like that.
fn is_call(line: &str) -> bool {
    let words = library::words(line).unwrap_or_default();
    let is_name = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c));
    words.first().is_some_and(|word| is_name(word) && !word.starts_with("--"))
        && words[1..].iter().all(|word| word.contains('='))
}

fn named(line: &str, library: &Library, template: &str) -> Result<Question, Failure> {
    let mut words = library::words(line)?.into_iter();
    let name = words.next().unwrap_or_default();
    let query = if library::is_file(&name) { of_file(&name, template)? } else { library::find(library, &name)? };
    let given = library::values(&query, words)?;
    // Wrong values show here, where the line is known; the length of a tick does not matter for that.
    query.bind(&given, Tick::Nanosecond)?;
    Ok(Question { query, given, is_named: true })
}

/// A file that the template names: beside it or below, as all files that files name.
fn of_file(name: &str, template: &str) -> Result<SavedQuery, Failure> {
    let beside = Path::new(template).parent().unwrap_or(Path::new("")).join(name);
    // Files may also be named as they are called from the current folder.
    let path = if beside.exists() { beside } else { PathBuf::from(name) };
    match paths::named_by(Path::new(template), &path) {
        Err(error) if error.is_refusal() => Err(Problem::new(error.to_string())
            .hint("give its folder on the command line, `--queries FOLDER`, and name the query without `.sql`")
            .into()),
        _ => Ok(SavedQuery::read(&path)?),
    }
}

/// SQL in the template; lines that errors name are those of the template.
fn written(sql: &str, file: &str, line: usize) -> Result<Question, Failure> {
    let padded = format!("{}{sql}", "\n".repeat(line));
    let headed = if has_header(sql) { padded } else { format!("{}--\n{sql}", "\n".repeat(line.saturating_sub(1))) };
    let query = SavedQuery::parse("", Origin::File(file.into()), &headed)?;
    query.bind(&[], Tick::Nanosecond).map_err(|error| Failure::from(error).in_file(file, Some(line as u64)))?;
    Ok(Question { query, given: Vec::new(), is_named: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Vec<Part>, String> {
        parse(text, "t.md", &Library::default()).map_err(|failure| match failure {
            Failure::Told(problem) => format!("{}: {}", problem.place.unwrap_or_default(), problem.message),
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn a_template_has_headings_text_and_questions() {
        let parts = parse_text(
            "# A\ntext\n```c\n# no heading\n```\n```sql if-rows\nlongest-tasks\n```\n```sql\nSELECT 1\n```\n",
        )
        .unwrap();
        assert!(matches!(&parts[0], Part::Heading(1, line) if line == "# A"));
        assert!(matches!(&parts[1], Part::Text(text) if text == "text\n```c\n# no heading\n```\n"));
        assert!(
            matches!(&parts[2], Part::Block(block) if block.if_rows && block.questions[0].query.name == "longest-tasks")
        );
        let needs = |part: &Part| match part {
            Part::Block(block) => block.questions[0].query.header.needs.len(),
            _ => 0,
        };
        let more = parse_text("```sql\n-- needs: no executions, links\nlongest-tasks\n```").unwrap();
        assert_eq!(needs(&more[0]), needs(&parts[2]) + 2);
        assert!(matches!(&parts[3], Part::Block(block) if block.questions[0].query.statement.line == 10));
    }

    #[test]
    fn a_page_is_bounded() {
        let block = "```sql\nSELECT 1\n```\n";
        assert_eq!(parse_text(&block.repeat(1_000)).unwrap().len(), 1_000);
        let error = parse_text(&block.repeat(1_001)).unwrap_err();
        assert!(error.ends_with("the template has more than 1000 blocks of questions"), "{error}");
        let error = parse_text(&"{{runs}} ".repeat(1_001)).unwrap_err();
        assert!(error.ends_with("the template has more than 1000 placeholders"), "{error}");
    }

    #[test]
    fn fences_of_every_kind_ask() {
        for text in [
            "~~~sql\nSELECT 1\n~~~",
            "````SQL\nSELECT 1\n````",
            "- item\n\n      ```sql\n      -- needs: tasks\n      SELECT 1\n      ```",
        ] {
            let parts = parse_text(text).unwrap();
            assert!(matches!(parts.last(), Some(Part::Block(block)) if block.questions.len() == 1), "{text}");
        }
        let phase = parse_text("```sql\nactorprof-logical-matrix phase='first half'\n```").unwrap();
        assert!(
            matches!(&phase[..], [Part::Block(block)] if block.questions[0].given == [("phase".to_owned(), "first half".to_owned())])
        );
        for text in ["``` `sql` ```\n", "~~~\n```sql\n~~~\n", "{{ site.url }} and {{\n"] {
            assert!(matches!(&parse_text(text).unwrap()[..], [Part::Text(same)] if same == text), "{text}");
        }
        let heading = parse_text("# {{ runs }}").unwrap();
        assert!(matches!(&heading[..], [Part::Heading(1, line)] if line == "# {{runs}}"));
    }

    #[test]
    fn wrong_blocks_say_where() {
        for (text, expected) in [
            ("\n```sql\nSELECT 1\n", "t.md:2: the block is not closed"),
            ("\n~~~~sql\nSELECT 1\n~~~\n```", "t.md:2: the block is not closed"),
            ("# {{runs}}\n{{ run }}", "t.md:2: `{{run}}` is an unknown placeholder; did you mean `runs`?"),
            ("```sql\nlongest-tasks 5\n```", "t.md:2: expected an SQL statement, found longest"),
            ("```sql facts\nlongest-tasks 5\n```", "t.md:2: `5` is not of the form key=value"),
            ("```sql facts\nlongest-tasks 'a\n```", "t.md:2: a quote is not closed"),
            ("```sql tabel\nSELECT 1\n```", "t.md:1: `tabel` has no meaning after `sql`; did you mean `table`?"),
            ("```sql\n```", "t.md:1: the block has no query"),
            ("```sql\n-- needs: tasks\n```", "t.md:1: the block has no query"),
            (
                "```sql\n-- needs: tusks\nlongest-tasks\n```",
                "t.md:2: `needs` names `tusks`, which is no table; did you mean `tasks`?",
            ),
            ("```sql\n-- needs: tasks\n-- needs: links\nlongest-tasks\n```", "t.md:3: a block has one line of needs"),
            ("a\n```sql\nlongest-task\n```", "t.md:3: no saved query `longest-task`; did you mean `longest-tasks`?"),
            (
                "a\n```sql\n-- titel: a\n-- needs: tasks\nSELECT 1\n```",
                "t.md:3: `titel` is no key of a header; did you mean `title`?",
            ),
            (
                "a\n```sql\nlongest-tasks limit=x\n```",
                "t.md:3: parameter `limit` of `longest-tasks`: `x` is no whole number",
            ),
            ("```sql\nSELECT 1;\nSELECT 2\n```", "t.md:3: a saved query is one statement, and this is the second"),
        ] {
            assert_eq!(parse_text(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn the_built_in_template_reads() {
        assert!(parse_text(BUILT_IN).unwrap().len() > 10);
    }
}
