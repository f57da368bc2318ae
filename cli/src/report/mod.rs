//! A page about the opened runs, from a template.
//!
//! Life of a page: [`template`] reads markdown with questions in it → [`render`] asks them and leaves out the sections
//! that the traces cannot answer → the command puts pictures beside the page, or into it (`--embed`), or makes the whole one page of
//! HTML ([`html`]). The same traces give the same bytes: no clock, no paths but the given ones, every table sorted.

pub(crate) mod html;
pub(crate) mod render;
pub(crate) mod template;

use tq_engine::queries::Library;

use crate::connection::Connection;
use crate::errors::Failure;

pub(crate) use render::{begin_with_hues, label_tasks, with_labels};

/// A saved query as a page shows it.
pub(crate) struct Section {
    /// Its pictures, each one SVG.
    pub(crate) pictures: Vec<String>,
    /// Its rows, HTML in which every text is escaped.
    pub(crate) rows: String,
}

/// One section of a page: a saved query by its name, with values for its parameters.
pub(crate) fn section(
    connection: &mut Connection,
    library: &Library,
    name: &str,
    given: &[(String, String)],
) -> Result<Section, Failure> {
    let mut parts = template::parse(&format!("```sql both\n{name}\n```\n"), name, library)?;
    for part in &mut parts {
        let template::Part::Block(block) = part else { continue };
        for question in &mut block.questions {
            // Wrong values are told as such, not as a fault of the template.
            question.query.bind(given, connection.session().tick())?;
            question.given = given.to_vec();
        }
    }
    let page = render::page(connection, &parts, true)?;
    let rows: Vec<&str> = page.text.lines().filter(|line| !line.starts_with("![")).collect();
    let pictures = page.pictures.into_iter().map(|picture| picture.svg).collect();
    Ok(Section { pictures, rows: html::body(&rows.join("\n")) })
}
