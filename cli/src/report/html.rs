//! A page of HTML from a page of markdown: one file, nothing fetched from elsewhere, no scripts but those of the time line.
//!
//! `pulldown-cmark` reads the markdown. What it would pass through unchanged is made harmless first: raw HTML becomes text, only
//! links to harmless addresses keep their target, and an embedded picture becomes an `<object>`, so that its tooltips work and its
//! styles do not affect the page.

use std::borrow::Cow;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, TextMergeStream};

use sha2::{Digest, Sha256};

use crate::text::base64::base64;
use crate::text::visible::visible_lines;
use crate::text::words::with_units_kept;

/// Tables that scroll have a shadow at the side where there is more: one of the page, which scrolls along, covers it at the end.
const STYLE: &str = "\
:root{color-scheme:light dark;--page:#fff;--shadow:#8c959f}\
body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem;color:#1f2328;background:var(--page)}\
table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto;font-size:.875rem;font-variant-numeric:tabular-nums;\
background:linear-gradient(90deg,var(--page) .7rem,transparent) 0 0/3rem 100% no-repeat local,\
linear-gradient(270deg,var(--page) .7rem,transparent) 100% 0/3rem 100% no-repeat local,\
linear-gradient(90deg,var(--shadow),transparent) 0 0/.6rem 100% no-repeat scroll,\
linear-gradient(270deg,var(--shadow),transparent) 100% 0/.6rem 100% no-repeat scroll}\
th,td{padding:.25rem .75rem;border-bottom:1px solid #d1d9e0;text-align:left;white-space:nowrap}\
th{font-weight:600}.long{display:inline-block;white-space:normal;overflow-wrap:anywhere;width:max-content;max-width:16rem}\
object,img{max-width:100%;height:auto;display:block;margin:1rem 0}\
code,pre{font-family:ui-monospace,monospace;font-size:.875em}\
pre{padding:1rem;overflow-x:auto;background:#f6f8fa}\
h1,h2{border-bottom:1px solid #d1d9e0;padding-bottom:.3rem;overflow-wrap:anywhere}\
h2{margin-top:2.5rem}\
iframe{width:100%;border:1px solid #d1d9e0;border-radius:.4rem}\
blockquote{margin:0;padding-left:1rem;border-left:.25rem solid #d1d9e0}\
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--shadow:#656c76}body{color:#f0f6fc}th,td,h1,h2,blockquote,iframe{border-color:#3d444d}pre{background:#151b23}a{color:#4493f8}}";

/// Without scripts the time line is not there.
const SHOW: &str = "document.getElementById('time-line').hidden = false";

/// Whatever came into the page, it runs nothing but these scripts and sends nothing.
fn policy(scripts: &[&str]) -> String {
    let source = |script: &&str| format!("'sha256-{}'", base64(&Sha256::digest(script.as_bytes())));
    let sources: Vec<String> = scripts.iter().map(source).collect();
    let sources = if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") };
    format!(
        "default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src 'self' data:; object-src 'self' data:; frame-src data:; connect-src 'none'; \
         form-action 'none'; base-uri 'none'"
    )
}

/// A time line to stand in a page: a document of its own, in a frame.
pub(crate) struct TimeLine {
    /// Pixels that show all rows, or many of them.
    pub(crate) height: usize,
    /// The HTML of the frame.
    pub(crate) document: String,
    /// The script in it, for a policy that allows no other.
    pub(crate) script: String,
}

/// The whole page; with a time line it has that before its first section.
pub(crate) fn page(markdown: &str, time_line: Option<&TimeLine>) -> String {
    let body = body(markdown);
    let (policy, body) = match time_line {
        None => (policy(&[]), Cow::Borrowed(body.as_str())),
        Some(page) => {
            let (before, sections) = body.split_at(first_section(&body));
            let height = page.height;
            let text = page.document.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
            let frame = format!(
                "<section id=\"time-line\" hidden><h2>Time line</h2>\n<p>Ctrl and the wheel zoom, Shift and the pointer pan, a drag selects; \
                 after a click in it, <kbd>?</kbd> lists the keys.</p>\n\
                 <iframe title=\"Time line\" style=\"height:min(85vh,{height}px)\" srcdoc=\"{text}\"></iframe></section>\n<script>{SHOW}</script>\n"
            );
            (policy(&[SHOW, &page.script]), Cow::Owned(format!("{before}{frame}{sections}")))
        }
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n",
        escape(&title(markdown).unwrap_or_else(|| "tq report".to_owned())),
    )
}

/// Where the first heading of the second level stands that is in no quote or list.
fn first_section(body: &str) -> usize {
    let is_within = |place: usize, element: &str| {
        let before = &body[..place];
        before.matches(&format!("<{element}>")).count() > before.matches(&format!("</{element}>")).count()
    };
    let mut headings = body.match_indices("<h2").map(|(place, _)| place);
    headings
        .find(|&place| !["blockquote", "ul", "ol"].iter().any(|element| is_within(place, element)))
        .unwrap_or(body.len())
}

fn events(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

/// The text of the first heading of the first level.
fn title(markdown: &str) -> Option<String> {
    let begins = |event: &Event<'_>| matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }));
    let mut events = events(markdown).skip_while(|event| !begins(event)).peekable();
    events.peek()?;
    let heading = events.take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    Some(heading.filter_map(|event| text_of(&event).map(str::to_owned)).collect())
}

pub(crate) fn body(markdown: &str) -> String {
    let mut picture = None;
    let mut html = String::with_capacity(markdown.len() + (markdown.len() >> 3));
    // Escaped letters come one by one.
    let events = with_units(TextMergeStream::new(events(markdown)));
    let events = events.filter_map(|event| harmless(event, &mut picture));
    pulldown_cmark::html::push_html(&mut html, with_breaks(events));
    html
}

/// In sentences no unit stands apart from its number. Tables, whose cells people copy, have no lines that break.
fn with_units<'a>(events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
    let mut in_cell = false;
    events.map(move |event| {
        match event {
            Event::Start(Tag::TableCell) => in_cell = true,
            Event::End(TagEnd::TableCell) => in_cell = false,
            Event::Text(text) if !in_cell => return Event::Text(with_units_kept(&text).into()),
            _ => {}
        }
        event
    })
}

/// Long texts of tables get lines, so that they do not push the numbers beside them off the page.
fn with_breaks<'a>(events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
    const LONG: usize = 28;
    let mut in_cell = false;
    events.flat_map(move |event| {
        match &event {
            Event::Start(Tag::TableCell) => in_cell = true,
            Event::End(TagEnd::TableCell) => in_cell = false,
            _ => {}
        }
        let is_long = in_cell && text_of(&event).is_some_and(|text| text.chars().count() > LONG);
        let around = |tag: &'static str| is_long.then_some(Event::InlineHtml(tag.into()));
        [around("<span class=\"long\">"), Some(event), around("</span>")].into_iter().flatten()
    })
}

/// A picture whose description is read: its address, the description so far, pictures within it.
struct Picture<'a> {
    address: CowStr<'a>,
    label: String,
    inner: usize,
}

/// An event as it may be written; `None` for what describes a picture.
fn harmless<'a>(event: Event<'a>, picture: &mut Option<Picture<'a>>) -> Option<Event<'a>> {
    if let Some(open) = picture {
        match &event {
            Event::Start(Tag::Image { .. }) => open.inner += 1,
            Event::End(TagEnd::Image) if open.inner > 0 => open.inner -= 1,
            Event::End(TagEnd::Image) => {
                return picture.take().map(|picture| Event::InlineHtml(drawn(&picture).into()));
            }
            Event::SoftBreak | Event::HardBreak => open.label.push(' '),
            event => open.label.push_str(text_of(event).unwrap_or_default()),
        }
        return None;
    }
    Some(match event {
        Event::InlineHtml(tag) if &*tag == "<br>" => Event::InlineHtml(tag),
        // In code, too, quotes are escaped: whoever searches a page for attributes finds none in texts.
        Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => Event::InlineHtml(escape(&text).into()),
        Event::Code(text) => Event::InlineHtml(format!("<code>{}</code>", escape(&text)).into()),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = if leads_somewhere(&dest_url) { dest_url } else { "#".into() };
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::Start(Tag::Image { dest_url, .. }) => {
            *picture = Some(Picture { address: dest_url, label: String::new(), inner: 0 });
            return None;
        }
        event => event,
    })
}

fn text_of<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => Some(text),
        _ => None,
    }
}

fn drawn(picture: &Picture<'_>) -> String {
    let (address, label) = (escape(&picture.address), escape(&picture.label));
    if address.starts_with("data:image/svg+xml") {
        format!("<object type=\"image/svg+xml\" data=\"{address}\" role=\"img\" aria-label=\"{label}\"></object>")
    } else {
        format!("<img src=\"{address}\" alt=\"{label}\">")
    }
}

/// An address that runs code, or that is a page of its own, is no address. Browsers skip blanks and control characters.
fn leads_somewhere(address: &str) -> bool {
    let address: String = address.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let scheme =
        address.split(['/', '?', '#']).next().and_then(|begin| begin.split_once(':')).map(|(scheme, _)| scheme);
    scheme.is_none_or(|scheme| ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

fn escape(text: &str) -> String {
    visible_lines(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_elements() {
        for (markdown, expected) in [
            ("# A *b*\ntext\nmore\n", "<h1>A <em>b</em></h1>\n<p>text\nmore</p>\n"),
            ("- a\n- **b** c\n  d\n", "<ul>\n<li>a</li>\n<li><strong>b</strong> c\nd</li>\n</ul>\n"),
            ("1. a\n2. b\n", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n"),
            ("```text\n<a> *b*\n```\n", "<pre><code class=\"language-text\">&lt;a&gt; *b*\n</code></pre>\n"),
            (
                "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n",
                "<table><thead><tr><th>a</th><th style=\"text-align: right\">b</th></tr></thead><tbody>\n\
                 <tr><td>x|y</td><td style=\"text-align: right\">1</td></tr>\n</tbody></table>\n",
            ),
            ("> a\n> b\n", "<blockquote>\n<p>a\nb</p>\n</blockquote>\n"),
            ("a `*b*` \\*c\\* 2 * 3 &lt; &", "<p>a <code>*b*</code> *c* 2 * 3 &lt; &amp;</p>\n"),
            ("[a](b.md) [c] ![d](e.svg)", "<p><a href=\"b.md\">a</a> [c] <img src=\"e.svg\" alt=\"d\"></p>\n"),
            ("a <script>x</script><br>", "<p>a &lt;script&gt;x&lt;/script&gt;<br></p>\n"),
            ("<script>\n*x*\n</script>\n", "<p>&lt;script&gt;\n*x*\n&lt;/script&gt;\n</p>\n"),
            ("[a](javascript:x)", "<p><a href=\"#\">a</a></p>\n"),
            ("[a](<Java&Tab;Script:x>)", "<p><a href=\"#\">a</a></p>\n"),
            ("<javascript:x>", "<p><a href=\"#\">javascript:x</a></p>\n"),
            ("![a *b* `c`](e.svg)", "<p><img src=\"e.svg\" alt=\"a b c\"></p>\n"),
            ("[a](data:text/html,x)", "<p><a href=\"#\">a</a></p>\n"),
            ("[a](b.md#c:d)", "<p><a href=\"b.md#c:d\">a</a></p>\n"),
            (
                "![a](<data:image/svg+xml,\" onload=\"x>)",
                "<p><object type=\"image/svg+xml\" data=\"data:image/svg+xml,&quot; onload=&quot;x\" role=\"img\" aria-label=\"a\"></object></p>\n",
            ),
            ("a\u{202e}b&#x202e;", "<p>a\\u{202e}b\\u{202e}</p>\n"),
        ] {
            assert_eq!(body(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn long_texts_of_tables_have_lines() {
        let html = body("|name|n|\n|:--|--:|\n|a\\_name\\_that\\_is\\_longer\\_than\\_others|1|\n|short|2|\n");
        assert!(
            html.contains(
                "<td style=\"text-align: left\"><span class=\"long\">a_name_that_is_longer_than_others</span></td>"
            ),
            "{html}"
        );
        assert!(html.contains(">short</td>"), "{html}");
    }

    #[test]
    fn the_time_line_stands_before_the_first_section() {
        let body = body("# a\nb\n\n> ## c\n\n- ## d\n\n## e\n");
        assert_eq!(&body[first_section(&body)..], "<h2>e</h2>\n");
        assert_eq!(first_section("<p>a</p>"), 8);
    }

    #[test]
    fn the_title_is_that_of_the_page() {
        assert_eq!(title("text\n\n# A `b` &lt;\n").as_deref(), Some("A b <"));
        assert_eq!(title("## A\n"), None);
    }

    #[test]
    fn anything_ends() {
        for text in ["|", "| a |", "```", "**", "[", "![", "\\", "&;", "#", ">", "- ", "`", "[a](", "é*"] {
            assert!(!page(text, None).is_empty());
        }
    }
}
