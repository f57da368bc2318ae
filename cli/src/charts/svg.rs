//! Elements of an SVG, as text.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

use crate::text::visible::{is_hidden, push_visible};

/// Size of text in pixels.
pub(super) const FONT_SIZE: f64 = 11.0;
/// The width of a column of characters that are no ASCII at [`FONT_SIZE`]; estimates only decide where things go.
const CHARACTER_WIDTH: f64 = 6.8;

/// A picture that grows element by element.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// A picture of that size. `title` is read by screen readers and shown by browsers; `style` is CSS beside the
    /// common one.
    pub(super) fn new(width: f64, height: f64, title: &str, style: &str) -> Svg {
        let (width, height) = (number(width), number(height));
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\" \
             font-size=\"{}\">\n<title>{}</title>\n<style>\n{COMMON_STYLE}{style}</style>\n",
            number(FONT_SIZE),
            escape(title)
        );
        let _ = writeln!(text, "<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>");
        Svg { text }
    }

    /// Appends an element that is ready.
    pub(super) fn raw(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }

    /// A rectangle with a tooltip.
    pub(super) fn bar(&mut self, class: &str, rectangle: Rectangle, tooltip: &str) {
        let Rectangle { x, y, width, height } = rectangle;
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            number(x),
            number(y),
            number(width),
            number(height)
        );
        if tooltip.is_empty() {
            self.text.push_str("/>\n");
        } else {
            let _ = writeln!(self.text, "><title>{}</title></rect>", escape(tooltip));
        }
    }

    /// A line of text; `anchor` is `start`, `middle` or `end`.
    pub(super) fn words(&mut self, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
        let _ = write!(self.text, "<text class=\"{class}\" x=\"{}\" y=\"{}\"", number(x), number(y));
        if anchor != "start" {
            let _ = write!(self.text, " text-anchor=\"{anchor}\"");
        }
        let _ = writeln!(self.text, ">{}</text>", escape(words));
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.text,
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        );
    }

    /// A path with a tooltip.
    pub(super) fn path(&mut self, class: &str, path: &str, tooltip: &str) {
        let _ = write!(self.text, "<path class=\"{class}\" d=\"{path}\"");
        if tooltip.is_empty() {
            self.text.push_str("/>\n");
        } else {
            let _ = writeln!(self.text, "><title>{}</title></path>", escape(tooltip));
        }
    }

    /// A dot with a tooltip.
    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tooltip: &str) {
        let _ = write!(
            self.text,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"",
            number(x),
            number(y),
            number(radius)
        );
        if tooltip.is_empty() {
            self.text.push_str("/>\n");
        } else {
            let _ = writeln!(self.text, "><title>{}</title></circle>", escape(tooltip));
        }
    }

    /// A text that ends at a point and is turned around it.
    pub(super) fn turned(&mut self, class: &str, x: f64, y: f64, degrees: f64, words: &str) {
        let (x, y) = (number(x), number(y));
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\" transform=\"rotate({} {x} {y})\">{}</text>",
            number(degrees),
            escape(words)
        );
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Where a bar stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rectangle {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A picture inside of a page of the other scheme would have a canvas of its own, which shines through at its edges.
const COMMON_STYLE: &str = ":root{color-scheme:light dark}\
.paper{fill:#ffffff}.ink{fill:#1f2328}.pale{fill:#59636e}.bold{font-weight:600}.grid{stroke:#d1d9e0;stroke-width:1;fill:none}\
.band{fill:#f6f8fa}.above{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.ink{fill:#f0f6fc}.pale{fill:#9198a1}.grid{stroke:#3d444d}\
.band{fill:#151b23}.above{stroke:#0d1117}}
";

/// A coordinate: two decimals at most, none where none are needed.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that XML shows as it is, and nothing of it hidden; characters that XML cannot hold become `\u{fffd}`.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => push_visible(c, &mut escaped),
        }
    }
    escaped
}

/// About how wide a text is, rather too wide than too narrow: the fonts of systems differ.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(c: char) -> f64 {
    match c {
        '\n' | '\t' => character_width(' '),
        c if is_hidden(c) => c.escape_default().map(character_width).sum(),
        'i' | 'j' | 'l' | '|' | '\'' | '.' | ',' | ':' | ';' | '!' | '·' | ' ' | '\u{a0}' => 3.6,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 4.6,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' | '—' | '→' => 10.2,
        '<' | '>' | '=' | '+' | '~' | '×' | '#' | 'G' | 'H' | 'N' | 'O' | 'Q' | 'U' | 'D' => 8.6,
        '_' | 's' | 'c' | 'k' | 'v' | 'x' | 'y' | 'z' | 'I' | 'J' => 6.0,
        'A'..='Z' => 7.4,
        c if c.is_ascii() => 6.8,
        c => c.width().unwrap_or(0) as f64 * CHARACTER_WIDTH,
    }
}

/// The text, cut with `…` to about that width.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut left = width - text_width("…");
    let fits = |c: &char| {
        left -= character_width(*c);
        left >= 0.0
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, expected) in [(0.0, "0"), (-0.001, "0"), (1.5, "1.5"), (10.0, "10"), (1.0 / 3.0, "0.33")] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("a<b & \"c\"\u{1b}\n"), "a&lt;b &amp; &quot;c&quot;\\u{1b} ");
        assert_eq!(escape("\u{202e}]]></text><script>\u{ffff}"), "\\u{202e}]]&gt;&lt;/text&gt;&lt;script&gt;\u{fffd}");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fitted("short", 100.0), "short");
        let cut = fitted("a very long label indeed", 60.0);
        assert!(cut.ends_with('…') && text_width(&cut) <= 60.0, "{cut}");
    }
}
