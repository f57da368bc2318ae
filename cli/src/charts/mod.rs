//! Charts: data in, SVG text out. Pure: no session, no files, no clock. Written here and not by a plotting library, because marks on a time
//! axis are exact integers, every mark has a tooltip, one name has one colour on a whole page, and millions of tasks are drawn in the memory of
//! few.
//!
//! A chart is a kind and its columns ([`spec`], the `-- chart:` line of a saved query); [`Chart::draw`] turns the answer
//! into the picture. One file per kind; [`data`] reads columns, [`scale`] and [`axis`] find round marks, [`sheet`] has what
//! all pictures share, [`palette`] and [`ramp`] choose colours, [`label`] shortens names, [`svg`] writes elements.
//!
//! The same data gives the same bytes: the number of decimals is fixed, and whatever has no order is sorted. Colours are
//! CSS classes with a light and a dark form, so that a picture is legible in both; there are no scripts, fonts or CSS
//! variables, since viewers other than browsers ignore those. Where there are more marks than pixels, several are drawn
//! as one, and the picture says so.

mod axis;
mod bar;
mod boxes;
mod data;
mod error;
mod flame;
pub(crate) mod gantt;
mod heatmap;
mod label;
mod line;
mod occupancy;
mod palette;
mod ramp;
mod scale;
mod sheet;
mod spec;
mod stacked;
mod svg;
mod tasks;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;

pub(crate) use data::{Data, natural};
pub(crate) use error::ChartError;
pub(crate) use palette::{Tells, hues, totals_of_work};

use palette::Need;
pub(crate) use spec::{Chart, KINDS};

/// What the pictures and tables of a page share: a name has one label and one colour in all of them, and runs one order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    given: Rc<RefCell<(label::Labels, palette::Hues)>>,
    runs: Rc<[String]>,
}

impl Names {
    /// For pictures of these runs, in their order.
    pub(crate) fn of_runs(runs: impl Iterator<Item = String>) -> Names {
        Names { runs: runs.collect(), ..Names::default() }
    }

    /// Whether there are several runs.
    pub(crate) fn has_runs(&self) -> bool {
        self.runs.len() > 1
    }

    /// Where a run stands among those that are open, or a study by its first run (`STUDY/size p=4 r=0`); others are behind them.
    fn place_of_run(&self, run: &str) -> usize {
        let is_of =
            |known: &String| known.strip_prefix(run).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.runs.iter().position(is_of).unwrap_or(self.runs.len())
    }

    /// What names are called for people; none like another.
    pub(crate) fn labels<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
        self.given.borrow_mut().0.of(names)
    }

    /// Texts of saved queries about changes, `work in NAME` and `NAME: waiting`, with their names as people read them.
    pub(crate) fn changes<'n>(&self, texts: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
        let parts = texts.map(label::name_of_change);
        let labels = self.labels(parts.clone().map(|[_, name, _]| name)).into_iter();
        parts.zip(labels).map(|([before, _, after], label)| format!("{before}{label}{after}")).collect()
    }

    /// Gives hues to names before there is a picture.
    pub(crate) fn begin_with(&self, totals: &[(&str, i128)]) {
        self.classes(totals, Need::Strong);
    }

    /// The hue of a name that has one.
    pub(crate) fn hue_of(&self, name: &str) -> Option<usize> {
        self.given.borrow().1.hue_of(name)
    }

    /// The class number of each name's colour, which follows from its total.
    fn classes(&self, totals: &[(&str, i128)], need: Need) -> Vec<usize> {
        self.given.borrow_mut().1.assign(totals, need)
    }
}

impl Chart {
    /// The picture of an answer.
    ///
    /// # Errors
    /// A column that the chart names is missing or is of the wrong type.
    pub(crate) fn draw(&self, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
        match self.kind() {
            "bar" => bar::draw(self, title, data),
            "stacked" => stacked::draw(self, title, data),
            "line" => line::draw(self, title, data),
            "occupancy" => occupancy::draw(self, title, data),
            "heatmap" => heatmap::draw(self, title, data),
            "box" => boxes::draw(self, title, data),
            "flame" => flame::draw(self, title, data),
            "tasks" => tasks::draw(self, title, data),
            _ => gantt::rows::draw(title, data),
        }
    }
}
