//! The files of the page, which are part of the program.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("page/", $name)))),*] };
}

/// Name and text of each file.
const FILES: &[(&str, &str)] = files![
    "bars.js",
    "counters.js",
    "dock.js",
    "dom.js",
    "grid.js",
    "guide.js",
    "hands.js",
    "head.js",
    "index.html",
    "inert.js",
    "lanes.js",
    "layers.js",
    "main.js",
    "minimap.js",
    "names.js",
    "overlays.js",
    "palette.js",
    "panel.js",
    "ruler.js",
    "selection.js",
    "series.js",
    "sql.js",
    "state.js",
    "steps.js",
    "strips.js",
    "style.css",
    "summary.js",
    "ticks.js",
    "tiles.js",
    "timeline.js",
    "tip.js",
    "trace.js",
    "view.js",
    "wire.js",
    "words.js"
];

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
    (
        [(CONTENT_TYPE, kind)],
        if kind.starts_with("text/javascript") { without_comments(text) } else { (*text).to_owned() },
    )
        .into_response()
}

/// A module without the comments that stand on lines of their own: types are for whoever reads the source.
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
    text.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_on_lines_of_their_own_are_left_out() {
        let module =
            "/**\n * What it is.\n */\n\nconst a = 1; /** kept */\n/** @param {number} a */\n// why\nf(a /* x */);\n";
        assert_eq!(without_comments(module), "\nconst a = 1; /** kept */\nf(a /* x */);\n");
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
