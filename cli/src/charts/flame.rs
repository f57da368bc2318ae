//! `flame stack=<text> value=<number>`: folded stacks (`main;solve;gemm`) as nested bars, the outermost at the top.
//!
//! Values of a stack are its own, without those of the stacks below it, and stacks that occur several times are summed.
//! Neighbours are sorted by name, as in every flame graph: width has a meaning, place from left to right has none.

use std::collections::{BTreeMap, BTreeSet};

use super::ChartError;
use super::data::{Data, in_words};
use super::label::{Cuts, shown};
use super::palette::{HUES, Need, style};
use super::scale::Quantity;
use super::sheet::{MARGIN, Sheet, WIDTH, counted, grey_note};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, Svg};

const ROW_HEIGHT: f64 = 18.0;
const DEPTH_MAX: usize = 64;
/// Narrower frames are not drawn.
const FRAME_MIN: f64 = 0.4;

#[derive(Default)]
struct Frame {
    /// The value of the frame itself.
    own: f64,
    /// The value with everything below it.
    total: f64,
    below: BTreeMap<String, Frame>,
}

impl Frame {
    fn names<'f>(&'f self, names: &mut BTreeSet<&'f str>) {
        for (name, frame) in &self.below {
            names.insert(name);
            frame.names(names);
        }
    }
}

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let stacks = data.words(chart.column("stack"))?;
    let values = data.numbers(chart.column("value"))?;
    let subtitle =
        format!("{} by {}, {}", in_words(&values.name), in_words(&stacks.name), counted(values.values.len(), "row"));
    let mut sheet = Sheet::new(title, subtitle);
    let mut by_stack = vec![0.0; stacks.words.len()];
    let mut left_out = 0;
    for (&code, &value) in stacks.codes.iter().zip(&values.values) {
        if value >= 0.0 {
            by_stack[code as usize] += value;
        } else {
            left_out += 1;
        }
    }
    let mut root = Frame::default();
    let mut own: BTreeMap<&str, f64> = BTreeMap::new();
    let mut too_deep = 0;
    for (stack, &value) in stacks.words.iter().zip(&by_stack).filter(|(_, value)| **value > 0.0) {
        let mut frame = &mut root;
        frame.total += value;
        let mut last = "";
        for (depth, name) in stack.split(';').enumerate() {
            if depth >= DEPTH_MAX {
                too_deep += 1;
                break;
            }
            frame = frame.below.entry(name.to_owned()).or_default();
            frame.total += value;
            last = name;
        }
        frame.own += value;
        *own.entry(last).or_default() += value;
    }
    if root.total <= 0.0 {
        return Ok(sheet.empty("no stack has a value"));
    }
    let totals: Vec<(&str, i128)> =
        own.iter().map(|(&name, &value)| (name, (value / root.total * 1e12) as i128)).collect();
    let classes: BTreeMap<&str, usize> =
        totals.iter().map(|(name, _)| *name).zip(data.names.classes(&totals, Need::Any)).collect();
    let mut names = BTreeSet::from(["all"]);
    root.names(&mut names);
    let labels = data.names.labels(names.iter().map(|name| shown(name)));
    let cuts = Cuts::new(labels.iter().map(String::as_str));
    let labels: BTreeMap<&str, &str> = names.iter().copied().zip(labels.iter().map(String::as_str)).collect();
    let look = Look { root: &root, classes: &classes, labels: &labels, cuts: &cuts, quantity: values.quantity };
    let depth = look.depth(&root);
    let narrow = look.narrow(&root);
    if left_out > 0 {
        sheet.notes.push(format!("{} without a value or with a negative one left out.", counted(left_out, "row")));
    }
    if too_deep > 0 {
        sheet.notes.push(format!("Cut to its first {DEPTH_MAX} frames: {}.", counted(too_deep, "deeper stack")));
    }
    let class_of = |name: &&str| classes.get(name).copied().unwrap_or(HUES);
    sheet.notes.extend(grey_note(names.iter().filter(|name| **name != "all").map(class_of), "name"));
    if narrow > 0 {
        sheet.notes.push(format!("{} narrower than a pixel not drawn.", counted(narrow, "frame")));
    }
    let top = sheet.top() + 4.0;
    Ok(sheet.draw(top + (depth + 1) as f64 * ROW_HEIGHT + 8.0, &style(), |svg| {
        look.frame(svg, "all", &root, (MARGIN, top));
    }))
}

/// What drawing a frame needs to know of the whole picture.
struct Look<'a> {
    root: &'a Frame,
    /// By name: the names with the most time of their own have a hue.
    classes: &'a BTreeMap<&'a str, usize>,
    /// By name: what is written on its frames, cut so that no two look alike.
    labels: &'a BTreeMap<&'a str, &'a str>,
    cuts: &'a Cuts,
    quantity: Quantity,
}

impl Look<'_> {
    fn width(&self, frame: &Frame) -> f64 {
        frame.total / self.root.total * (WIDTH - 2.0 * MARGIN)
    }

    fn drawn<'f>(&self, frame: &'f Frame) -> impl Iterator<Item = (&'f String, &'f Frame)> + use<'_, 'f> {
        frame.below.iter().filter(|(_, below)| self.width(below) >= FRAME_MIN)
    }

    fn depth(&self, frame: &Frame) -> usize {
        self.drawn(frame).map(|(_, below)| 1 + self.depth(below)).max().unwrap_or(0)
    }

    /// Frames that are too narrow, with those below them.
    fn narrow(&self, frame: &Frame) -> usize {
        let count = |below: &Frame| self.narrow(below) + usize::from(self.width(below) < FRAME_MIN);
        frame.below.values().map(count).sum()
    }

    fn frame(&self, svg: &mut Svg, name: &str, frame: &Frame, (x, y): (f64, f64)) {
        let class = self.classes.get(name).copied().unwrap_or(HUES);
        let width = self.width(frame);
        let percent = 100.0 * frame.total / self.root.total;
        let tooltip = format!(
            "{}: {} ({percent:.1} %), itself {}",
            shown(name),
            self.quantity.text(frame.total),
            self.quantity.text(frame.own)
        );
        let drawn = if width > 3.0 { width - 0.6 } else { width };
        svg.bar(&format!("f{class}"), Rectangle { x, y, width: drawn, height: ROW_HEIGHT - 1.0 }, &tooltip);
        if let Some(text) = self.labels.get(name).and_then(|label| self.cuts.fit(label, drawn - 8.0)) {
            svg.words(&format!("t{class}"), x + 4.0, y + ROW_HEIGHT / 2.0 + FONT_SIZE * 0.3, "start", &text);
        }
        let mut x = x;
        for (name, below) in &frame.below {
            if self.width(below) >= FRAME_MIN {
                self.frame(svg, name, below, (x, y + ROW_HEIGHT));
            }
            x += self.width(below);
        }
    }
}
