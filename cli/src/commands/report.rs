//! `tq report`: reads the template, has the page made, and writes it with its pictures.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use tq_engine::open::TraceSpec;
use tq_engine::paths::read_text;
use tq_engine::queries::QUERY_BYTES_MAX;

use crate::args::{LibraryArgs, OpenArgs, ReportArgs};
use crate::connection::Connection;
use crate::errors::{Failure, Problem};
use crate::files::{self, Inputs, Outputs};
use crate::format::Format;
use crate::output::Destination;
use crate::report::html::{self, TimeLine};
use crate::report::render::{self, Drawn, Page, address};
use crate::report::template;
use crate::text::base64::base64;
use crate::text::runner::{Spelling, harmless};
use crate::view::enclosed;
use crate::{library, open, terminal, timeout};

/// What messages call the template that is built in.
const BUILT_IN_NAME: &str = "built-in template.md";

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    timeout::start(args.timeout);
    if args.open.traces.is_empty() {
        return Err(Problem::new("a report needs a trace").hint("`tq report TRACE`").into());
    }
    // A page only asks, wherever its SQL stands.
    let args = &ReportArgs { open: OpenArgs { read_only: true, ..args.open.clone() }, ..args.clone() };
    open::watch_memory(&args.open);
    // What is wrong with the template shows before minutes of reading.
    let library = library::open(&args.library)?;
    let parts = match &args.template {
        None => template::parse(template::BUILT_IN, BUILT_IN_NAME, &library)?,
        Some(file) => {
            let path = file.clone();
            let text = timeout::parsing(move || read_text(&path))?;
            let text = text.map_err(|error| Problem::file("read", file, &error))?;
            if text.len() > QUERY_BYTES_MAX {
                let what =
                    format!("`{}` is larger than {} KiB, which no template is", file.display(), QUERY_BYTES_MAX >> 10);
                return Err(Problem::new(what)
                    .hint("a template holds questions and their frame; put long texts into files of their own")
                    .into());
            }
            let name = file.display().to_string();
            timeout::parsing(move || template::parse(&text, &name, &library))??
        }
    };
    must_not_overwrite_inputs(&parts, args)?;
    if let Some(file) = &args.output {
        of_a_page(file)?;
    }
    let mut connection = Connection::open(&args.open)?;
    let page = render::page(&mut connection, &parts, !args.tables)?;
    if page.text.trim().is_empty() {
        return Err(nothing_on(&page));
    }
    let file = page_file(args, &connection);
    // A page in a pipe has nothing beside it.
    let is_html = args.html || file.as_deref().is_some_and(|file| is_of(file, "html") || is_of(file, "htm"));
    let text = if is_html {
        html::page(&with_pictures_inside(&page), time_line(&mut connection, bytes_of_time_line(args))?.as_ref())
    } else if args.embed || file.is_none() {
        with_pictures_inside(&page)
    } else {
        with_pictures_beside(&page, file.as_deref())?
    };
    write_page(file.as_deref(), &text, if is_html { Spelling::Reference } else { Format::Markdown.spelling() })?;
    // The built-in template has sections for every kind of trace; what one's own left out is worth a word.
    if args.template.is_some() {
        for (section, reason) in &page.left_out {
            terminal::note(&format!("the section `{section}` is left out: {reason}"));
        }
    }
    // The page is there for what it has, and the status says that it is not all.
    for problem in &page.unanswered {
        Failure::from(problem.clone()).tell();
    }
    if let Some(file) = &file {
        terminal::done(&format!("wrote {}", file.display()));
        // A name that no shell takes (it holds a NUL) was no file.
        let traces: Vec<String> = args.open.traces.iter().map(|trace| TraceSpec::shown_text(trace)).collect();
        let traces = shlex::try_join(traces.iter().map(String::as_str)).unwrap_or_default();
        terminal::done(&format!("next: `tq {traces}` opens the prompt"));
    }
    if page.unanswered.is_empty() { Ok(()) } else { Err(Failure::CouldNotRun) }
}

/// Bytes of the time line, where nobody says how many.
const BYTES_OF_TIME_LINE: usize = 2_000_000;

/// How large the time line of a page is; a template of one's own has it where its size is given.
fn bytes_of_time_line(args: &ReportArgs) -> Option<usize> {
    let usual = args.template.is_none().then_some(BYTES_OF_TIME_LINE);
    args.timeline_size.or(usual).filter(|_| !args.no_timeline)
}

/// The built-in page about a session as one of HTML, and whether it has all that it asked for.
pub(crate) fn built_in(connection: &mut Connection) -> Result<(String, Vec<Problem>), Failure> {
    let parts = template::parse(template::BUILT_IN, BUILT_IN_NAME, &library::open(&LibraryArgs::default())?)?;
    let page = render::page(connection, &parts, true)?;
    if page.text.trim().is_empty() {
        return Err(nothing_on(&page));
    }
    let text = html::page(&with_pictures_inside(&page), time_line(connection, Some(BYTES_OF_TIME_LINE))?.as_ref());
    Ok((text, page.unanswered))
}

fn nothing_on(page: &Page) -> Failure {
    let reasons = page.left_out.iter().map(|(section, reason)| format!("`{section}` is left out: {reason}"));
    reasons.fold(Problem::new("there is nothing on the page"), Problem::hint).into()
}

/// The time line of a page of HTML. One that takes more than it may is left out,
/// and a note says so.
fn time_line(connection: &mut Connection, bytes: Option<usize>) -> Result<Option<TimeLine>, Failure> {
    let Some(bytes) = bytes else { return Ok(None) };
    match enclosed::page(connection, bytes) {
        Err(Failure::Told(problem)) => {
            let hints = problem.hints.iter().map(|hint| format!("; {hint}"));
            terminal::note(&format!("the page has no time line: {}{}", problem.message, hints.collect::<String>()));
            Ok(None)
        }
        other => other,
    }
}

/// Refuses a command whose output is one of the files that it reads.
fn must_not_overwrite_inputs(parts: &[template::Part], args: &ReportArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::of(&args.open);
    inputs.folders(&library::directories(&args.library));
    args.template.iter().for_each(|file| inputs.add(file));
    template::queries(parts).for_each(|query| inputs.query(query));
    let mut outputs = Outputs::default();
    outputs.add("-o", args.output.as_deref());
    if let Some(file) = args.output.as_deref().filter(|file| *file != Path::new("-")) {
        outputs.add_family("a picture of the page", file, '.', ".svg");
    }
    outputs.apart_from(&inputs)
}

/// Refuses files that are called like something else than markdown and HTML.
fn of_a_page(file: &Path) -> Result<(), Failure> {
    let known = ["md", "markdown", "html", "htm", "txt"];
    let Some(extension) = file.extension().filter(|_| !known.iter().any(|known| is_of(file, known))) else {
        return Ok(());
    };
    let extension = extension.to_string_lossy();
    let problem = Problem::new(format!("a page is markdown or HTML, but the name of the file ends in `.{extension}`"));
    let pictures = ["svg", "png", "pdf"].iter().any(|picture| is_of(file, picture));
    Err(match pictures {
        true => problem.hint(
            "call it `.html` (browsers print it as PDF) or `.md`; `tq query TRACE QUERY -o FILE.svg` draws one picture",
        ),
        false => problem.hint("call it `.md` or `.html`"),
    }
    .into())
}

fn is_of(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

/// Where the page goes; `None` = standard output.
fn page_file(args: &ReportArgs, connection: &Connection) -> Option<PathBuf> {
    match &args.output {
        Some(file) if file == Path::new("-") => None,
        Some(file) => Some(file.clone()),
        None if !io::stdout().is_terminal() => None,
        None => {
            let name = connection.session().runs().first().map_or("trace", |run| run.name.as_str());
            let name: String =
                name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
            Some(PathBuf::from(format!("{name}.report.{}", if args.html { "html" } else { "md" })))
        }
    }
}

fn with_pictures_inside(page: &Page) -> String {
    let data = |picture: &Drawn| format!("data:image/svg+xml;base64,{}", base64(picture.svg.as_bytes()));
    let addresses: Vec<String> = page.pictures.iter().map(data).collect();
    with_addresses(&page.text, &addresses)
}

fn with_pictures_beside(page: &Page, file: Option<&Path>) -> Result<String, Failure> {
    let file = file.unwrap_or(Path::new("report.md"));
    let mut addresses = Vec::new();
    for (name, picture) in file_names(file, &page.pictures).into_iter().zip(&page.pictures) {
        files::write(&name, &harmless(&picture.svg, Spelling::Reference))?;
        let name = name.file_name().map(|name| name.to_string_lossy().replace(' ', "%20")).unwrap_or_default();
        addresses.push(name);
    }
    Ok(with_addresses(&page.text, &addresses))
}

fn with_addresses(text: &str, addresses: &[String]) -> String {
    let replaced = |text: String, (number, to): (usize, &String)| text.replace(&address(number), to);
    addresses.iter().enumerate().fold(text.to_owned(), replaced)
}

/// `page.md` has `page.timeline.svg` beside it; a second picture of that name is `page.timeline-2.svg`.
fn file_names(page: &Path, pictures: &[Drawn]) -> Vec<PathBuf> {
    let mut taken = HashSet::new();
    let name = |picture: &Drawn| {
        let numbered = (2..).map(|number| format!("{}-{number}", picture.name));
        let free = std::iter::once(picture.name.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
        page.with_extension(format!("{}.svg", free.unwrap_or_default()))
    };
    pictures.iter().map(name).collect()
}

fn write_page(file: Option<&Path>, text: &str, spelling: Spelling) -> Result<(), Failure> {
    let (destination, mut writer) = Destination::open(file, spelling)?;
    writer.write_all(text.as_bytes())?;
    writer.flush()?;
    drop(writer);
    destination.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_stand_beside_their_page() {
        let picture = |name: &str| Drawn { name: name.to_owned(), svg: String::new() };
        let names = file_names(Path::new("a/b.report.md"), &[picture("x"), picture("y"), picture("x")]);
        assert_eq!(names, ["a/b.report.x.svg", "a/b.report.y.svg", "a/b.report.x-2.svg"].map(PathBuf::from));
    }

    #[test]
    fn addresses_are_replaced_whole() {
        assert_eq!(
            with_addresses(&format!("![]({}) ![]({})", address(1), address(10)), &["a".to_owned(), "b".to_owned()]),
            format!("![](b) ![]({})", address(10))
        );
        // No name of a trace reads like one.
        let name = crate::output::markdown::escape(&format!("({})", address(0)));
        assert_eq!(with_addresses(&name, &["a".to_owned()]), name);
    }
}
