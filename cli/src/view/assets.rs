//! The files of the page, which are part of the program.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::joined;
use crate::errors::{Failure, Problem};
use crate::report::html::TimeLine;

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("page/", $name)))),*] };
}

/// Name and text of each file.
const FILES: &[(&str, &str)] = files![
    "aligned.js",
    "bars.js",
    "colouring.js",
    "counters.js",
    "dock.js",
    "dom.js",
    "enclosed.js",
    "grid.js",
    "guide.js",
    "hands.js",
    "head.js",
    "index.html",
    "inert.js",
    "instants.js",
    "lanes.js",
    "layers.js",
    "legend.js",
    "main.js",
    "minimap.js",
    "names.js",
    "overlays.js",
    "palette.js",
    "panel.js",
    "parts.js",
    "pyramid.js",
    "ruler.js",
    "selection.js",
    "series.js",
    "singles.js",
    "sql.js",
    "state.js",
    "steps.js",
    "strips.js",
    "style.css",
    "summary.js",
    "ticks.js",
    "tiles.js",
    "tints.js",
    "timeline.js",
    "tip.js",
    "trace.js",
    "view.js",
    "wire.js",
    "words.js"
];

/// The page with its style and modules inside, and what else stands in its body: one file that loads no others.
///
/// # Errors
/// A module has a form that [`joined`] does not know, which a test rules out.
pub(super) fn whole(inside: &str, height: usize) -> Result<TimeLine, Failure> {
    const STYLE: &str = r#"<link rel="stylesheet" href="style.css">"#;
    let text = |name: &str| FILES.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| *text);
    let modules: Vec<(&str, String)> = FILES.iter().map(|(name, text)| (*name, without_comments(text))).collect();
    let script = joined::script(&modules, "main").map_err(|what| Problem::internal(&what))?;
    let (head, end) = text("index.html").rsplit_once("</body>").unwrap_or_default();
    let head = head.replace(STYLE, &format!("<style>{}</style>", text("style.css"))).replace(SCRIPT, "");
    Ok(TimeLine { document: format!("{head}{inside}<script>{script}</script>\n</body>{end}"), script, height })
}

/// A file of the page; the empty name is the page itself.
pub(super) fn file(name: &str) -> Response {
    let name = if name.is_empty() { "index.html" } else { name };
    let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = match name.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    };
    let text = match name.rsplit_once('.') {
        Some((_, "js")) => without_comments(text),
        Some((_, "html")) => asking_early(text),
        _ => (*text).to_owned(),
    };
    ([(CONTENT_TYPE, kind)], text).into_response()
}

const SCRIPT: &str = r#"<script type="module" src="main.js"></script>"#;

/// What the page asks for first.
const FIRST: [&str; 4] = ["info", "lanes", "names", "counters"];

/// The page, which asks for all modules at once instead of finding them one by one, and for what these ask for first.
fn asking_early(page: &str) -> String {
    let modules = FILES.iter().filter(|(name, _)| name.ends_with(".js"));
    let modules = modules.map(|(name, _)| format!("<link rel=\"modulepreload\" href=\"{name}\">\n"));
    let first = FIRST.iter().map(|name| format!("<link rel=\"preload\" as=\"fetch\" crossorigin href=\"{name}\">\n"));
    page.replace(SCRIPT, &format!("{}{SCRIPT}", first.chain(modules).collect::<String>()))
}

/// A module without the comments that stand on lines of their own and without indentation: both are for whoever reads the source. No text of
/// a module goes over several lines.
fn without_comments(text: &str) -> String {
    let mut inside = false;
    let is_code = |line: &&str| {
        let line = line.trim();
        let was_inside = inside;
        inside = if was_inside { !line.ends_with("*/") } else { line.starts_with("/**") && !line.contains("*/") };
        let is_comment =
            was_inside || line.starts_with("/**") && line.ends_with("*/") || inside || line.starts_with("// ");
        !is_comment
    };
    text.lines().filter(is_code).flat_map(|line| [line.trim_start(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_all_modules_at_once() {
        let page = FILES.iter().find(|(name, _)| *name == "index.html").map_or("", |(_, text)| *text);
        let asked = asking_early(page).matches("<link rel=\"modulepreload\" href=\"").count();
        assert_eq!(asked, FILES.len() - 2);
    }

    #[test]
    fn comments_on_lines_of_their_own_are_left_out() {
        let module =
            "/**\n * What it is.\n */\n\nconst a = 1; /** kept */\n/** @param {number} a */\n// why\n  f(a /* x */);\n";
        assert_eq!(without_comments(module), "\nconst a = 1; /** kept */\nf(a /* x */);\n");
    }

    #[test]
    fn the_page_becomes_one_file() {
        let whole = whole("<p>inside</p>", 500).unwrap();
        assert!(
            whole.document.contains("<p>inside</p><script>'use strict';"),
            "the script comes behind what is inside"
        );
        assert!(whole.document.contains("<style>"), "the style is inside");
        for loaded in ["href=\"style.css\"", "src=\"main.js\"", "import {", "\nexport "] {
            assert!(!whole.document.contains(loaded), "{loaded}");
        }
    }

    /// What the page can load, all together.
    #[test]
    fn the_page_is_small() {
        let served =
            |name: &str, text: &str| if name.ends_with(".js") { without_comments(text).len() } else { text.len() };
        let bytes: usize = FILES.iter().map(|(name, text)| served(name, text)).sum();
        assert!(bytes <= 200_000, "{bytes}");
    }
}
