//! What all pictures share: size, title, legend, axes, and the notes below.

use super::Names;
use super::data::Words;
use super::label::{fitted_apart, fitted_middle};
use super::palette::HUES;
use super::scale::{Scale, grouped};
use super::svg::{FONT_SIZE, Rectangle, Svg, fitted, number, text_width};

pub(super) const WIDTH: f64 = 1_080.0;
pub(super) const MARGIN: f64 = 16.0;

/// A picture without its plot.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) legend: Vec<LegendEntry>,
    /// What the reader must know about what is drawn and what is not.
    pub(super) notes: Vec<String>,
}

/// The rectangle that values are drawn in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// A colour with its meaning.
#[derive(Debug)]
pub(super) struct LegendEntry {
    line: usize,
    x: f64,
    mark: Mark,
    text: String,
}

/// What a legend shows before a text: the class of a square or of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    Square(String),
    Line(String),
}

impl Sheet {
    pub(super) fn new(title: &str, subtitle: impl Into<String>) -> Sheet {
        Sheet { title: title.to_owned(), subtitle: subtitle.into(), ..Sheet::default() }
    }

    /// Where the plot may begin.
    pub(super) fn top(&self) -> f64 {
        self.head() + self.legend.last().map_or(0, |entry| entry.line + 1) as f64 * 18.0
    }

    /// Where the legend begins.
    fn head(&self) -> f64 {
        24.0 + self.titles().len() as f64 * 19.0 + self.subtitles().len() as f64 * 15.0
    }

    fn titles(&self) -> Vec<String> {
        // 15 pixels and bold; DejaVu, which is there where no other is, is wide.
        lines(&self.title, (WIDTH - 2.0 * MARGIN) / 1.56)
    }

    fn subtitles(&self) -> Vec<String> {
        lines(&self.subtitle, WIDTH - 2.0 * MARGIN)
    }

    /// The picture; `body` draws what stands between [`Sheet::top`] and `bottom`.
    pub(super) fn draw(&self, bottom: f64, style: &str, body: impl FnOnce(&mut Svg)) -> String {
        let notes: Vec<String> = self.notes.iter().flat_map(|note| lines(note, WIDTH - 2.0 * MARGIN)).collect();
        let mut svg = Svg::new(WIDTH, bottom + 10.0 + notes.len() as f64 * 15.0, &self.title, style);
        let mut y = 7.0;
        svg.raw("<g font-size=\"15\">");
        for title in self.titles() {
            y += 19.0;
            svg.words("ink bold", MARGIN, y, "start", &title);
        }
        svg.raw("</g>");
        y += 2.0;
        for subtitle in self.subtitles() {
            y += 15.0;
            svg.words("pale", MARGIN, y, "start", &subtitle);
        }
        for entry in &self.legend {
            entry.draw(&mut svg, self.head() - 2.0);
        }
        body(&mut svg);
        for (index, note) in notes.iter().enumerate() {
            svg.words("pale", MARGIN, bottom + 14.0 + index as f64 * 15.0, "start", note);
        }
        svg.finish()
    }

    /// A picture of nothing, which says so.
    pub(super) fn empty(&self, why: &str) -> String {
        let top = self.head();
        self.draw(top + 22.0, "", |svg| svg.words("pale", MARGIN, top + 16.0, "start", why))
    }
}

impl LegendEntry {
    /// Entries from left to right, on as many lines as they need.
    pub(super) fn flow(entries: Vec<(Mark, String)>) -> Vec<LegendEntry> {
        let (mut line, mut x) = (0, MARGIN);
        entries
            .into_iter()
            .map(|(mark, text)| {
                let width = mark.width() + text_width(&text) + 16.0;
                if x > MARGIN && x + width > WIDTH - MARGIN {
                    line += 1;
                    x = MARGIN;
                }
                let entry = LegendEntry { line, x, mark, text };
                x += width;
                entry
            })
            .collect()
    }

    fn draw(&self, svg: &mut Svg, top: f64) {
        let y = top + self.line as f64 * 18.0;
        match &self.mark {
            Mark::Square(class) => svg.bar(class, Rectangle { x: self.x, y, width: 11.0, height: 11.0 }, ""),
            Mark::Line(class) => svg.line(class, (self.x, y + 5.5), (self.x + 20.0, y + 5.5)),
        }
        svg.words("ink", self.x + self.mark.width(), y + 9.5, "start", &self.text);
    }
}

impl Mark {
    fn width(&self) -> f64 {
        match self {
            Mark::Square(_) => 16.0,
            Mark::Line(_) => 26.0,
        }
    }
}

/// The legend of labels with classes of [`super::Names`]: those with a hue by their totals, then what shares the grey.
pub(super) fn hues_legend(
    labels: &[String],
    classes: &[usize],
    totals: &[f64],
    with_shares: bool,
    mark: impl Fn(String) -> Mark,
) -> Vec<(Mark, String)> {
    const LABEL_MAX: f64 = 300.0;
    let sum: f64 = totals.iter().sum();
    let share = |total: f64| match with_shares && sum > 0.0 {
        true => format!(" {:.1} %", 100.0 * total / sum),
        false => String::new(),
    };
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by(|&a, &b| totals[b].total_cmp(&totals[a]).then_with(|| labels[a].cmp(&labels[b])));
    let (named, others): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|&index| classes[index] != HUES);
    let shown = named.iter().chain(others.first().filter(|_| others.len() == 1));
    let texts: Vec<String> = shown.clone().map(|&index| labels[index].clone()).collect();
    let mut entries: Vec<(Mark, String)> = (shown.zip(fitted_apart(&texts, LABEL_MAX)))
        .map(|(&index, text)| (mark(classes[index].to_string()), format!("{text}{}", share(totals[index]))))
        .collect();
    if others.len() > 1 {
        let total = others.iter().map(|&index| totals[index]).sum();
        entries.push((mark(HUES.to_string()), format!("{} others{}", grouped(others.len() as u64), share(total))));
    }
    entries
}

/// The legend of marks that are coloured by a column: runs as they were opened, so that base stands before new, other words by
/// their totals.
pub(super) fn colours_legend(
    colours: &Words,
    names: &Names,
    classes: &[usize],
    totals: &[f64],
    mark: impl Fn(String) -> Mark,
) -> Vec<(Mark, String)> {
    let places: Vec<f64> = match colours.name.as_str() {
        "run" => colours.words.iter().map(|run| -(names.place_of_run(run) as f64)).collect(),
        _ => totals.to_vec(),
    };
    hues_legend(&colours.labels, classes, &places, false, mark)
}

/// What a picture says of its grey marks.
pub(super) fn grey_note(classes: impl Iterator<Item = usize>, what: &str) -> Option<String> {
    let grey = classes.filter(|class| *class == HUES).count();
    (grey > 0).then(|| {
        format!("Grey: {} without a colour of {} own.", counted(grey, what), if grey == 1 { "its" } else { "their" })
    })
}

impl Plot {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + scale.place(value) * self.width()
    }

    pub(super) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom - scale.place(value) * self.height()
    }

    /// Lines and labels of an axis at the left.
    pub(super) fn y_axis(&self, svg: &mut Svg, scale: &Scale) {
        for (value, label) in &scale.marks {
            let y = self.y(scale, *value);
            svg.line("grid", (self.left, y), (self.right, y));
            svg.words("pale", self.left - 7.0, y + FONT_SIZE * 0.35, "end", label);
        }
    }

    /// Labels of a second axis at the right.
    pub(super) fn right_axis(&self, svg: &mut Svg, scale: &Scale) {
        for (value, label) in &scale.marks {
            let y = self.y(scale, *value);
            svg.line("grid", (self.right, y), (self.right + 4.0, y));
            svg.words("pale", self.right + 7.0, y + FONT_SIZE * 0.35, "start", label);
        }
    }

    /// Lines and labels of an axis below.
    pub(super) fn x_axis(&self, svg: &mut Svg, scale: &Scale) {
        let mut free_from = f64::MIN;
        for (value, label) in &scale.marks {
            let x = self.x(scale, *value);
            svg.line("grid", (x, self.top), (x, self.bottom + 4.0));
            let half = text_width(label) / 2.0;
            if x - half >= free_from {
                svg.words("pale", x, self.bottom + 17.0, "middle", label);
                free_from = x + half + 4.0;
            }
        }
    }

    /// What an axis shows, above the left one's end.
    pub(super) fn y_title(&self, svg: &mut Svg, title: &str) {
        svg.words("pale", MARGIN, self.top - 8.0, "start", title);
    }

    /// What the axis below shows; `y` is the baseline.
    pub(super) fn x_title(&self, svg: &mut Svg, y: f64, title: &str) {
        svg.words("pale", self.left + self.width() / 2.0, y, "middle", title);
    }
}

/// `duration (ms)`.
pub(super) fn axis_title(name: &str, scale: &Scale) -> String {
    if scale.unit.is_empty() { name.to_owned() } else { format!("{name} ({})", scale.unit) }
}

/// The room that the labels of an axis at the left need.
pub(super) fn marks_width(scale: &Scale) -> f64 {
    scale.marks.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max)
}

/// Labels below an axis of categories: side by side, some of them, or turned.
#[derive(Debug)]
pub(super) struct Categories {
    labels: Vec<String>,
    layout: Labels,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Labels {
    Flat,
    /// Only every n-th label.
    Some(usize),
    /// Turned by an angle in degrees.
    Turned(f64),
}

impl Categories {
    /// Labels that stand `step` pixels apart. Those of an order (`ordered`: numbers, times) may be left out.
    pub(super) fn new(labels: &[String], step: f64, ordered: bool) -> Categories {
        const LABEL_MAX: f64 = 190.0;
        let labels = fitted_apart(labels, LABEL_MAX);
        let widest = labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
        let layout = if widest + 6.0 <= step {
            Labels::Flat
        } else if ordered || step < FONT_SIZE + 1.0 {
            Labels::Some(((widest + 14.0) / step).ceil().max(1.0) as usize)
        } else {
            // The closer they stand, the steeper they must be not to touch.
            Labels::Turned(if step >= 20.0 { 35.0 } else { 60.0 })
        };
        Categories { labels, layout }
    }

    /// The room that they need below the plot.
    pub(super) fn height(&self) -> f64 {
        match self.layout {
            Labels::Flat | Labels::Some(_) => 20.0,
            Labels::Turned(degrees) => {
                let widest = self.labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
                14.0 + widest * degrees.to_radians().sin()
            }
        }
    }

    /// How far to the left of the plot they reach, where they are `step` pixels apart.
    pub(super) fn reach(&self, step: f64) -> f64 {
        /// What reaches further is cut.
        const MOST: f64 = 150.0;
        let Labels::Turned(degrees) = self.layout else {
            return 0.0;
        };
        let reach = |(index, label): (usize, &String)| {
            text_width(label) * degrees.to_radians().cos() - (index as f64 + 0.5) * step
        };
        self.labels.iter().enumerate().map(reach).fold(0.0, f64::max).min(MOST)
    }

    /// Draws them; `centre` says where each stands.
    pub(super) fn draw(&self, svg: &mut Svg, bottom: f64, centre: impl Fn(usize) -> f64) {
        for (index, label) in self.labels.iter().enumerate() {
            let x = centre(index);
            match self.layout {
                Labels::Some(every) if index % every != 0 => {}
                Labels::Flat | Labels::Some(_) => {
                    // Those of the first and the last columns must not leave the picture.
                    let half = text_width(label) / 2.0 + 2.0;
                    svg.words("pale", x.min(WIDTH - half).max(half), bottom + 16.0, "middle", label);
                }
                Labels::Turned(degrees) => {
                    // The first ones must not leave the picture.
                    let label = fitted_middle(label, (x - 2.0) / degrees.to_radians().cos());
                    svg.turned("pale", x + 4.0, bottom + 12.0, -degrees, &label);
                }
            }
        }
    }
}

/// A text on lines that are not wider than so much, cut between words.
fn lines(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(" ") + text_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fitted(word, width)),
        }
    }
    lines
}

/// `1 row`, `5 000 000 rows`.
pub(super) fn counted(count: usize, word: &str) -> String {
    format!("{} {word}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// A rule across the plot, with a tooltip.
pub(super) fn rule(svg: &mut Svg, class: &str, from: (f64, f64), to: (f64, f64), tooltip: &str) {
    let path = format!("M{} {}L{} {}", number(from.0), number(from.1), number(to.0), number(to.1));
    svg.path(class, &path, tooltip);
}
