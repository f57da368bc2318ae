//! Scalability studies: PaScal Viewer, PaScal Analyzer and SPERF. These are not event traces but run times of a program, in
//! total and per region, for many numbers of cores and problem sizes.
//!
//! ```text
//! 1  [{"region":"0, 0","filename":"a.c","executions":[[{"argument":"8","runs":[{"threads":1,"time":2.5}, …         viewer
//! 2  {"config":{…,"data_descriptor":{"keys":["cores","input","repetitions"],…}},"data":{"2;0;1":{"start_time":…   analyzer
//! 3  {"Region":"12, 14","Filename":"./prog","Execution 1":{"InputData 1":{"arguments":…,"Run 1":{…                sperf
//! 4  <regiao><l>12</l><l>14</l>…<execucoes><item><arg>…</arg><execucao><n>1</n><t>0.36</t>…                       sperf
//! 5  ⏎,1,2,⏎,⏎1,1.00000,0.49979,⏎…                                                                                sperf
//! ```
//!
//! | the format's word | here |
//! | --- | --- |
//! | execution: a size, a number of threads, a repetition | a run, `<argument> p=<threads> r=<repetition from 0>` |
//! | region | a task of kind `region`; `''` is the whole program |
//! | argument, input | `runs.argument`, its rank in `runs.size_order` |
//! | frequency and other keys | `runs.args`, and a study for each ([`study::Setting`]) |
//! | sensor samples, energies, given efficiencies | `counters` |
//!
//! Life of the data: [`recognise`] tells the shape → [`json`] (a tree over the text) → a reader per shape fills a [`Study`],
//! times as exact decimals ([`decimal`]) → [`build`] makes runs of it. Cost: about four times the file in memory.
//!
//! What the Viewer crashes on or answers wrongly is counted instead: sizes that lack a number of threads
//! (`missing_configuration`), times of 0 (`bad_time`), regions not written `first, last` (`region_lines`), the same size twice
//! in a repetition (`repeated_configuration`).

mod analyzer;
mod build;
mod decimal;
mod json;
mod recognise;
mod sperf;
mod study;
mod tree;
mod viewer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use self::json::{Flaw, Json};
use self::recognise::Shape;
use self::sperf::Role;
use self::study::{EXECUTION_MEMORY, Study};
use super::importer::{FormatDoc, ImportContext, Importer};
use crate::error::ImportError;
use crate::paths;
use crate::trace::{Source, findings, stem};

static DOC: FormatDoc = FormatDoc {
    name: "pascal",
    title: "Scalability studies: PaScal Viewer, PaScal Analyzer, SPERF",
    dialects: &[
        "PaScal Viewer's JSON (also written by SPERF 2)",
        "PaScal Analyzer's JSON of 2018 to 2025: any layout of keys, regions, sensors, energies",
        "SPERF's JSON, XML and CSV; the regions of a result are read with its whole program",
    ],
    fills: "runs (one per execution: cores, argument, problem_size, size_order, repetition, study), tasks (kind = region, parents \
            by hierarchy or line ranges), executions, counters (sensors, energies; efficiency where the file has no times)",
    loses: "SPERF's speedups and efficiencies beside times (they have no factor for the base); threads of a region's entries, \
            which are merged",
    options: &[],
};

// What may be found.

/// Scalability studies.
pub(super) struct Pascal;

impl Importer for Pascal {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        recognise::shape(source).is_some()
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let Some(shape) = recognise::shape(source) else {
            let what = "neither a list of regions, nor `config` and `data`, nor a SPERF file".to_owned();
            return Err(damaged(source, "byte 0".to_owned(), what));
        };
        let mut study = Study::default();
        read(source, shape, &mut study)?;
        for companion in regions_beside(source, shape) {
            read(&companion, shape, &mut study)?;
        }
        if shape != Shape::Analyzer {
            let whole = study.regions.iter().position(|region| region.name.is_empty());
            tree::nest(&mut study.regions, whole);
        }
        build::build(source, study, shape == Shape::Analyzer, context)
    }

    fn companions(&self, file: &Path) -> Vec<PathBuf> {
        called_regions(file)
    }

    fn companions_among(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let shape = |path: &Path| Source::open(path, None).ok().and_then(|source| recognise::shape(&source));
        let named: Vec<(String, &PathBuf)> = files.iter().map(|file| (stem(file), file)).collect();
        let mut regions = Vec::new();
        let mut wholes: HashMap<&str, Vec<Shape>> = HashMap::new();
        for (name, file) in &named {
            if let (result, Role::Region(_)) = sperf::role(name)
                && let Some(own) = shape(file).filter(|shape| shape.is_sperf())
            {
                regions.push((result, own, *file));
                wholes.entry(result).or_default();
            }
        }
        for (name, file) in &named {
            if let Some(shapes) = wholes.get_mut(name.as_str()) {
                shapes.extend(shape(file));
            }
        }
        regions.retain(|(result, own, _)| wholes[result].contains(own));
        regions.into_iter().map(|(.., file)| file.clone()).collect()
    }
}

/// What is called as a file of a region of a whole program is.
fn called_regions(file: &Path) -> Vec<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = stem(file);
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_of = |path: &PathBuf| matches!(sperf::role(&stem(path)), (result, Role::Region(_)) if result == name);
    found.filter(is_of).collect()
}

/// The files of the regions that belong to the file of a whole program, by region.
fn regions_beside(source: &Source, shape: Shape) -> Vec<Source> {
    let name = source.stem();
    if !shape.is_sperf() || sperf::role(&name).1 != Role::Whole || source.path() == Path::new("-") {
        return Vec::new();
    }
    let folder = source.path().parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(i64, Source)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let own = stem(&path);
            let (result, Role::Region(id)) = sperf::role(&own) else { return None };
            let is_own = result == name && paths::is_beside(source.path(), &path);
            let source = is_own.then(|| source.beside(&path).ok()).flatten()?;
            (recognise::shape(&source) == Some(shape)).then_some((id, source))
        })
        .collect();
    found.sort_by_key(|(id, _)| *id);
    found.into_iter().map(|(_, source)| source).collect()
}

/// Adds what a file holds.
fn read(source: &Source, shape: Shape, study: &mut Study) -> Result<(), ImportError> {
    let bytes = source.read_all()?;
    let lossy = String::from_utf8_lossy(&bytes);
    let text: &str = &lossy;
    if matches!(lossy, std::borrow::Cow::Owned(_)) {
        study.stats.note(findings::NOT_UTF8, 1, || source.path().display().to_string());
    }
    let name = source.stem();
    let (_, role) = sperf::role(&name);
    match shape {
        Shape::SperfCsv => {
            // A line has a comma behind each cell, and its first cell is no execution.
            let [commas, lines] = [b',', b'\n'].map(|byte| memchr::memchr_iter(byte, text.as_bytes()).count());
            source.charge(commas.saturating_sub(lines) * EXECUTION_MEMORY)?;
            sperf::read_csv(text, role, study);
        }
        Shape::SperfXml => {
            source.charge(sperf::begun(text, "execucao") as usize * EXECUTION_MEMORY)?;
            let end = sperf::read_xml(text, role, study, 0);
            let rest = &text[end..];
            let documents = memchr::memmem::find_iter(&text.as_bytes()[..end], b"<regiao>").count();
            note_documents(documents, study);
            if end == 0 {
                let what = "`</regiao>` is missing: the file breaks off".to_owned();
                return Err(damaged(source, place(text, text.len()), what));
            }
            if rest.contains("<regiao") {
                study
                    .stats
                    .note(findings::TRUNCATED, 1, || format!("a document that breaks off, {}", place(text, end)));
            }
        }
        Shape::Viewer | Shape::Analyzer | Shape::SperfJson => read_documents(source, text, role, study)?,
    }
    Ok(())
}

/// Reads the sequence of JSON documents of a text. Text after the first one that is not JSON is counted.
fn read_documents(source: &Source, text: &str, role: Role, study: &mut Study) -> Result<(), ImportError> {
    let mut at = json::space(text.as_bytes(), 0);
    let (mut documents, mut repetitions) = (0, 0);
    let (mut held, mut looked_at) = (0, 0);
    while at < text.len() {
        let (mut tree, mut refused) = (0, None);
        let grow = |bytes| {
            let granted = source.charge(bytes);
            tree += if granted.is_ok() { bytes } else { 0 };
            granted.map_err(|error| refused = Some(error)).is_ok()
        };
        let (document, end) = match json::value_within(text, at, grow) {
            Ok(read) => read,
            Err(Flaw { what: json::OUT_OF_MEMORY, .. }) => return Err(refused.unwrap_or_else(|| out_of_memory(source))),
            Err(Flaw { at, what }) if documents == 0 => {
                return Err(damaged(source, place(text, at), what.to_owned()));
            }
            Err(Flaw { at, what }) => {
                study
                    .stats
                    .note(findings::TRUNCATED, 1, || format!("after the first document: {what}, {}", place(text, at)));
                break;
            }
        };
        match recognise::shape_of(&document) {
            Some(Shape::Viewer) => viewer::read(&document, study),
            Some(Shape::Analyzer) => analyzer::read(&document, study),
            Some(_) => {
                sperf::read_json(&document, role, study, repetitions);
                let is_execution = |(key, _): &&(std::borrow::Cow<'_, str>, Json<'_>)| key.starts_with("Execution ");
                repetitions += document.members().iter().filter(is_execution).count() as i64;
            }
            None => {
                study.stats.note(findings::NOT_READ, 1, || format!("a document of another kind, {}", place(text, at)));
            }
        }
        documents += 1;
        at = json::space(text.as_bytes(), end);
        drop(document);
        source.release(tree);
        // Looking at all of the study after each of a million small documents would be quadratic.
        if at >= looked_at * 2 || at == text.len() {
            looked_at = at;
            let bytes = study.memory();
            source.charge(bytes.saturating_sub(held))?;
            held = held.max(bytes);
        }
    }
    note_documents(documents, study);
    Ok(())
}

fn out_of_memory(source: &Source) -> ImportError {
    ImportError::Memory { path: source.path().to_owned(), what: json::OUT_OF_MEMORY.to_owned() }
}

fn note_documents(documents: usize, study: &mut Study) {
    if documents > 1 {
        let finding = || format!("{documents} documents; repetitions of later ones are numbered on");
        study.stats.note(findings::SEVERAL_DOCUMENTS, 1, finding);
    }
}

/// `line 1, column 112 (byte 111)`.
fn place(text: &str, at: usize) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = 1 + before.len() - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    format!("line {line}, column {column} (byte {at})")
}

fn damaged(source: &Source, place: String, what: String) -> ImportError {
    ImportError::Damaged { path: source.path().to_owned(), format: DOC.name, place, what }
}
