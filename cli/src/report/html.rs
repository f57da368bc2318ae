//! A page of HTML from a page of markdown: one file, no scripts, nothing fetched from elsewhere.
//!
//! Reads the markdown that reports are made of: headings, paragraphs, lists, tables, fenced code, quotes, rules, links,
//! pictures, emphasis. A picture inside of the page becomes an object, so that its tooltips work and its styles stay its own.

use std::fmt::Write;

use crate::text::visible::visible_lines;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1f2328;background:#fff}\
table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto;font-size:.875rem;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .75rem;border-bottom:1px solid #d1d9e0;text-align:left;white-space:nowrap}\
th{font-weight:600}\
.r{text-align:right}\
object,img{max-width:100%;height:auto;display:block;margin:1rem 0}\
code,pre{font-family:ui-monospace,monospace;font-size:.875em}\
pre{padding:1rem;overflow-x:auto;background:#f6f8fa}\
h1,h2{border-bottom:1px solid #d1d9e0;padding-bottom:.3rem}\
h2{margin-top:2.5rem}\
blockquote{margin:0;padding-left:1rem;border-left:.25rem solid #d1d9e0}\
@media (prefers-color-scheme:dark){body{color:#f0f6fc;background:#0d1117}th,td,h1,h2,blockquote{border-color:#3d444d}pre{background:#151b23}a{color:#4493f8}}";

/// Whatever came into the page, it runs nothing and sends nothing.
const POLICY: &str = "script-src 'none'; connect-src 'none'; form-action 'none'; base-uri 'none'";

/// The whole page.
pub(super) fn page(markdown: &str) -> String {
    let title = markdown.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("tq report");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{}</body>\n</html>\n",
        without_tags(&inline(title)),
        body(markdown)
    )
}

fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text
}

fn body(markdown: &str) -> String {
    let lines: Vec<&str> = markdown.lines().collect();
    let mut html = String::new();
    let mut at = 0;
    while at < lines.len() {
        at += block(&lines[at..], &mut html).max(1);
    }
    html
}

/// Writes the block that lines begin with and says how many of them it takes.
fn block(lines: &[&str], html: &mut String) -> usize {
    let line = lines[0];
    if line.trim().is_empty() {
        return 1;
    }
    if let Some(level) = heading(line) {
        let _ = writeln!(html, "<h{level}>{}</h{level}>", inline(line[level..].trim()));
        return 1;
    }
    if line.starts_with("```") {
        return fenced(lines, html);
    }
    if line.starts_with('|') && lines.get(1).is_some_and(|rule| is_rule_of_table(rule)) {
        return table(lines, html);
    }
    if matches!(line.trim(), "---" | "***" | "___") {
        html.push_str("<hr>\n");
        return 1;
    }
    if let Some(first) = item(line) {
        return list(lines, first.0, html);
    }
    if line.starts_with('>') {
        let count = lines.iter().take_while(|line| line.starts_with('>')).count();
        let inner: Vec<&str> = lines[..count].iter().map(|line| line[1..].trim_start()).collect();
        let _ = writeln!(html, "<blockquote>\n{}</blockquote>", body(&inner.join("\n")));
        return count;
    }
    let begins_other = |line: &&str| {
        line.trim().is_empty()
            || heading(line).is_some()
            || line.starts_with("```")
            || line.starts_with('|')
            || item(line).is_some()
    };
    let count = 1 + lines[1..].iter().take_while(|line| !begins_other(line)).count();
    let _ = writeln!(html, "<p>{}</p>", inline(&lines[..count].join("\n")));
    count
}

fn heading(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    ((1..=6).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}

fn fenced(lines: &[&str], html: &mut String) -> usize {
    let fence: String = lines[0].chars().take_while(|&c| c == '`').collect();
    let count = lines[1..].iter().take_while(|line| line.trim() != fence).count();
    html.push_str("<pre><code>");
    for line in &lines[1..=count] {
        html.push_str(&escape(line));
        html.push('\n');
    }
    html.push_str("</code></pre>\n");
    count + 2
}

fn is_rule_of_table(line: &str) -> bool {
    line.starts_with('|') && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn table(lines: &[&str], html: &mut String) -> usize {
    let count = lines.iter().take_while(|line| line.starts_with('|')).count();
    let right: Vec<bool> = cells(lines[1]).iter().map(|rule| rule.ends_with(':') && !rule.starts_with(':')).collect();
    html.push_str("<table>\n");
    let mut row = |tag: &str, line: &str| {
        html.push_str("<tr>");
        for (at, cell) in cells(line).iter().enumerate() {
            let class = if right.get(at).copied().unwrap_or(false) { " class=\"r\"" } else { "" };
            let _ = write!(html, "<{tag}{class}>{}</{tag}>", inline(cell));
        }
        html.push_str("</tr>\n");
    };
    row("th", lines[0]);
    for line in &lines[2..count] {
        row("td", line);
    }
    html.push_str("</table>\n");
    count
}

/// The cells of a row; `\|` is no border.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in line.trim().trim_start_matches('|').chars() {
        if c == '|' && !escaped {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    // What stands behind the last border is no cell.
    if cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The kind of list that a line belongs to, and its text.
fn item(line: &str) -> Option<(&'static str, &str)> {
    if let Some(text) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(("ul", text));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| line[digits..].strip_prefix(". ")).flatten().map(|text| ("ol", text))
}

fn list(lines: &[&str], kind: &str, html: &mut String) -> usize {
    let mut items: Vec<String> = Vec::new();
    let mut count = 0;
    for line in lines {
        match item(line) {
            Some((other, text)) if other == kind => items.push(text.to_owned()),
            None if line.starts_with("  ") && !line.trim().is_empty() => {
                if let Some(last) = items.last_mut() {
                    last.push('\n');
                    last.push_str(line.trim());
                }
            }
            _ => break,
        }
        count += 1;
    }
    let _ = writeln!(html, "<{kind}>");
    for item in items {
        let _ = writeln!(html, "<li>{}</li>", inline(&item));
    }
    let _ = writeln!(html, "</{kind}>");
    count
}

/// Text with its emphasis, code, links and pictures.
fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '\\' if rest[1..].starts_with(|c: char| c.is_ascii_punctuation()) => {
                html.push_str(&escape(&rest[1..2]));
                2
            }
            '`' => code(rest, &mut html),
            '!' if rest.starts_with("![") => picture(rest, &mut html),
            '[' => link(rest, &mut html),
            '*' if rest.starts_with("**") => emphasis(rest, "**", "strong", &mut html),
            '*' => emphasis(rest, "*", "em", &mut html),
            '<' if rest.starts_with("<br>") => {
                html.push_str("<br>");
                4
            }
            '&' => entity(rest, &mut html),
            _ => 0,
        };
        if taken == 0 {
            html.push_str(&escape(&rest[..c.len_utf8()]));
            rest = &rest[c.len_utf8()..];
        } else {
            rest = &rest[taken..];
        }
    }
    html
}

fn code(text: &str, html: &mut String) -> usize {
    let Some(end) = text[1..].find('`') else { return 0 };
    let _ = write!(html, "<code>{}</code>", escape(&text[1..=end]));
    end + 2
}

fn emphasis(text: &str, mark: &str, tag: &str, html: &mut String) -> usize {
    let inner = &text[mark.len()..];
    let Some(end) = inner.find(mark).filter(|&end| end > 0) else { return 0 };
    if inner.starts_with(char::is_whitespace) || inner[..end].ends_with(['\\', ' ']) {
        return 0;
    }
    let _ = write!(html, "<{tag}>{}</{tag}>", inline(&inner[..end]));
    end + 2 * mark.len()
}

/// `[text](address)` at the beginning of a text: both, and how long it is.
fn bracketed(text: &str) -> Option<(&str, &str, usize)> {
    let mut escaped = false;
    let close = text.char_indices().skip(1).find(|(_, c)| {
        let closes = *c == ']' && !escaped;
        escaped = *c == '\\' && !escaped;
        closes
    })?;
    let address = text[close.0 + 1..].strip_prefix('(')?;
    let end = address.find(')')?;
    Some((&text[1..close.0], &address[..end], close.0 + end + 3))
}

fn link(text: &str, html: &mut String) -> usize {
    let Some((label, address, length)) = bracketed(text) else { return 0 };
    let address = if leads_somewhere(address) { address } else { "#" };
    let _ = write!(html, "<a href=\"{}\">{}</a>", escape(address), inline(label));
    length
}

/// An address that runs code, or that is a page of its own, is no address. Browsers skip blanks and control characters.
fn leads_somewhere(address: &str) -> bool {
    let address: String = address.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let scheme =
        address.split(['/', '?', '#']).next().and_then(|begin| begin.split_once(':')).map(|(scheme, _)| scheme);
    scheme.is_none_or(|scheme| ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

fn picture(text: &str, html: &mut String) -> usize {
    let Some((label, address, length)) = bracketed(&text[1..]) else { return 0 };
    let label = without_tags(&inline(label));
    if address.starts_with("data:image/svg+xml") {
        let _ = write!(
            html,
            "<object type=\"image/svg+xml\" data=\"{}\" role=\"img\" aria-label=\"{label}\"></object>",
            escape(address)
        );
    } else {
        let _ = write!(html, "<img src=\"{}\" alt=\"{label}\">", escape(address));
    }
    length + 1
}

/// `&lt;` stays what it is.
fn entity(text: &str, html: &mut String) -> usize {
    let end = text.bytes().take(10).position(|byte| byte == b';').unwrap_or(0);
    let is_entity = end > 1 && text[1..end].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'#');
    if is_entity {
        html.push_str(&text[..=end]);
        return end + 1;
    }
    0
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
            ("```text\n<a> *b*\n```\n", "<pre><code>&lt;a&gt; *b*\n</code></pre>\n"),
            (
                "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n",
                "<table>\n<tr><th>a</th><th class=\"r\">b</th></tr>\n<tr><td>x|y</td><td class=\"r\">1</td></tr>\n</table>\n",
            ),
            ("> a\n> b\n", "<blockquote>\n<p>a\nb</p>\n</blockquote>\n"),
            ("a `*b*` \\*c\\* 2 * 3 &lt; &", "<p>a <code>*b*</code> *c* 2 * 3 &lt; &amp;</p>\n"),
            ("[a](b.md) [c] ![d](e.svg)", "<p><a href=\"b.md\">a</a> [c] <img src=\"e.svg\" alt=\"d\"></p>\n"),
            ("<script>x</script><br>", "<p>&lt;script&gt;x&lt;/script&gt;<br></p>\n"),
            ("[a](javascript:x)", "<p><a href=\"#\">a</a></p>\n"),
            ("[a]( Java\tScript:x)", "<p><a href=\"#\">a</a></p>\n"),
            ("[a](data:text/html,x)", "<p><a href=\"#\">a</a></p>\n"),
            ("[a](b.md#c:d)", "<p><a href=\"b.md#c:d\">a</a></p>\n"),
            (
                "![a](data:image/svg+xml,\" onload=\"x)",
                "<p><object type=\"image/svg+xml\" data=\"data:image/svg+xml,&quot; onload=&quot;x\" role=\"img\" aria-label=\"a\"></object></p>\n",
            ),
            ("a\u{202e}b", "<p>a\\u{202e}b</p>\n"),
        ] {
            assert_eq!(body(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn anything_ends() {
        for text in ["|", "| a |", "```", "**", "[", "![", "\\", "&;", "#", ">", "- ", "`", "[a](", "é*"] {
            assert!(!page(text).is_empty());
        }
    }
}
