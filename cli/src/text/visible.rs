//! Text from strangers, made visible: names in traces, file names, titles.
//!
//! Control characters steer a terminal, and bidirectional control characters (U+202E and its kin) show a text in another order
//! than it has, so that `gnp.exe` reads `exe.png`. Wherever people look (tables, markdown, HTML, pictures, JUnit, messages),
//! both are shown as `\u{1b}` and `\u{202e}`; CSV, JSON, Parquet and Arrow, which programs read, keep them. This is the one
//! place that knows which characters these are.

use std::borrow::Cow;

/// The text with what one could not see shown as an escape; line ends too.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, &is_hidden)
}

/// [`visible`] for texts of several lines with tabs: these two stay.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    replaced(text, &|c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// A character as [`visible`] shows it.
pub(crate) fn push_visible(c: char, text: &mut String) {
    if is_hidden(c) {
        text.extend(escape(c));
    } else {
        text.push(c);
    }
}

/// Whether a character steers a terminal, turns the direction of a text, or ends a line where nobody sees it.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn replaced<'t>(text: &'t str, is_shown: &dyn Fn(char) -> bool) -> Cow<'t, str> {
    let Some(first) = text.find(is_shown) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_shown(c) {
            shown.extend(escape(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// `\n`, `\t`, `\r` or `\u{…}`.
fn escape(c: char) -> std::char::EscapeDefault {
    c.escape_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown() {
        for (text, expected) in [
            ("gemm", "gemm"),
            ("日本 ü", "日本 ü"),
            ("a\u{1b}[31m", "a\\u{1b}[31m"),
            ("a\r\nb\tc\0", "a\\r\\nb\\tc\\u{0}"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("x\u{202e}gnp.exe", "x\\u{202e}gnp.exe"),
            (
                "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}",
                "\\u{61c}\\u{200e}\\u{200f}\\u{202a}\\u{202b}\\u{202c}\\u{202d}",
            ),
            ("\u{2066}\u{2067}\u{2068}\u{2069}", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}"),
            ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
            // Joiners are part of words and of emoji.
            ("👩\u{200d}💻\u{200c}\u{feff}", "👩\u{200d}💻\u{200c}\u{feff}"),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(&visible(text)), expected, "shown twice");
        }
        assert_eq!(visible_lines("a\n\tb\r\u{202e}"), "a\n\tb\\r\\u{202e}");
    }
}
