//! `tq report`: one page of markdown about each opened run, with a Gantt chart.
//!
//! Life of a page: [`sections`] asks SQL and keeps each question with its answer → [`facts`] says the three most useful
//! things in plain words → the page is put together here, with the questions at its end, so that every figure can be
//! asked again at the prompt. The same traces give the same bytes: no clock, no paths but the given ones, every table
//! sorted.

mod facts;
mod sections;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::args::ReportArgs;
use crate::ask::Asker;
use crate::commands::query::picture;
use crate::errors::{Failure, Problem};
use crate::output::markdown::escape;
use crate::output::{Destination, Picture};
use crate::talk;

use sections::RunAnswers;

/// Where the page goes, and its pictures.
struct Place {
    /// `None` = standard output.
    page: Option<PathBuf>,
    embed: bool,
}

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    if args.open.traces.is_empty() {
        return Err(Problem::new("a report needs a trace").hint("`tq report TRACE`").into());
    }
    let mut asker = Asker::open(&args.open)?;
    let place = place(args, &asker);
    let order = picture(&mut asker)?.order;
    let names: Vec<String> = asker.session().runs().iter().map(|run| run.name.clone()).collect();

    let mut page = String::new();
    let several = names.len() > 1;
    if several {
        let _ = write!(page, "# {} runs\n\n{}\n", names.len(), sections::overview(&mut asker)?);
    }
    let mut pictures = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let answers = RunAnswers::ask(&mut asker, name)?;
        let chart =
            sections::gantt(&mut asker, &answers, Picture { title: name.clone(), order: order.clone(), chart: None })?;
        let link = if place.embed {
            format!("data:image/svg+xml;base64,{}", base64(chart.as_bytes()))
        } else {
            let file = picture_file(place.page.as_deref().unwrap_or(Path::new("report.md")), several.then_some(number));
            let link = file.file_name().map(|name| name.to_string_lossy().replace(' ', "%20")).unwrap_or_default();
            pictures.push((file, chart));
            link
        };
        if number > 0 || several {
            page.push('\n');
        }
        write_run(&mut page, &answers, &link, several);
    }

    for (file, chart) in pictures {
        write_file(Some(&file), &chart)?;
    }
    write_file(place.page.as_deref(), &page)?;
    if let Some(file) = &place.page {
        talk::line(&format!("wrote {}", file.display()));
        talk::line(&format!("next: `tq {}` opens the prompt", args.open.traces.join(" ")));
    }
    Ok(())
}

fn place(args: &ReportArgs, asker: &Asker) -> Place {
    let page = match &args.output {
        Some(file) if file == Path::new("-") => None,
        Some(file) => Some(file.clone()),
        None if !io::stdout().is_terminal() => None,
        None => {
            let name = asker.session().runs().first().map_or("trace", |run| run.name.as_str());
            let name: String =
                name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
            Some(PathBuf::from(format!("{name}.report.md")))
        }
    };
    // A page in a pipe has nothing beside it.
    let embed = args.embed || page.is_none();
    Place { page, embed }
}

fn picture_file(page: &Path, number: Option<usize>) -> PathBuf {
    let extension = number.map_or_else(|| "svg".to_owned(), |number| format!("{number}.svg"));
    page.with_extension(extension)
}

fn write_file(file: Option<&Path>, text: &str) -> Result<(), Failure> {
    let (destination, mut writer) = Destination::open(file)?;
    writer.write_all(text.as_bytes())?;
    writer.flush()?;
    drop(writer);
    destination.commit()
}

fn write_run(page: &mut String, answers: &RunAnswers, picture: &str, below: bool) {
    let level = if below { "##" } else { "#" };
    let _ = writeln!(page, "{level} {}\n", escape(&answers.name));
    for fact in facts::facts(answers) {
        let _ = writeln!(page, "- {fact}");
    }
    let _ = writeln!(page, "\n![Timeline of {}: a lane per location]({picture})\n", escape(&answers.name));
    for section in &answers.sections {
        let _ = writeln!(page, "{level}# {}\n\n{}\n", section.title, section.text.trim_end());
    }
    let _ = writeln!(
        page,
        "{level}# The questions behind the figures\n\nAt the prompt, each can be asked again and changed.\n"
    );
    let _ = writeln!(page, "```sql\n{}\n```", answers.asked.join("\n\n"));
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(group >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn pictures_stand_beside_their_page() {
        assert_eq!(picture_file(Path::new("a/b.report.md"), None), Path::new("a/b.report.svg"));
        assert_eq!(picture_file(Path::new("page"), Some(1)), Path::new("page.1.svg"));
    }
}
