//! `heatmap x=<category> y=<category> value=<number> [totals=true] [panel=<text>] [palette=…]`: a matrix of colours.
//!
//! Rows of one cell are summed. A cell without a value keeps the colour of the paper. All panels share one colour scale, and
//! those that have a category in common share all of theirs; a study beside one of other sizes has its own, and so has each panel
//! its own columns where these are times. Where there are more
//! rows or columns than fit, several are drawn as one, with their mean; totals remain sums.

use super::ChartError;
use super::data::{Data, Shares, Words, in_words};
use super::label::{fitted_apart, fitted_middle, shown};
use super::palette::HUES;
use super::ramp::{Palette, Range, SHADES};
use super::scale::Quantity;
use super::sheet::{Categories, MARGIN, Sheet, WIDTH, counted};
use super::spec::Chart;
use super::svg::{FONT_SIZE, Rectangle, Svg, text_width};

/// Columns and rows of a matrix, and where there are several panels.
const CELLS_MAX: [(usize, usize); 2] = [(160, 128), (60, 48)];
/// Panels that are drawn, and those of few cells: as many as have room in the same picture.
const PANELS_MAX: usize = 12;
const SMALL_PANELS_MAX: usize = 24;
/// What all panels share.
const CELLS_OF_PANELS_MAX: usize = PANELS_MAX * CELLS_MAX[1].0 * CELLS_MAX[1].1;
const CELL_WIDTH_MAX: f64 = 76.0;
const CELL_HEIGHT_MAX: f64 = 24.0;
const HEIGHT: f64 = 520.0;
const LABELS_MAX: f64 = 170.0;
/// The longest bar of a total.
const TOTAL: f64 = 70.0;

const STYLE: &str = ".none{fill:none;stroke:#d1d9e0;stroke-width:.5}
@media (prefers-color-scheme:dark){.none{stroke:#3d444d}}
";

/// A matrix by row and column; NaN = no value.
struct Matrix {
    name: String,
    cells: Vec<Vec<f64>>,
    /// Which rows and columns are drawn: their places, ascending.
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// Values whose mean a cell shows.
    shared: f64,
}

pub(super) fn draw(chart: &Chart, title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    let (x, y) = (data.words(chart.column("x"))?, data.words(chart.column("y"))?);
    let values = data.numbers(chart.column("value"))?;
    let panels = data.panels(chart.get("panel"))?;
    let palette = Palette::of(chart.get("palette"));
    let (columns_max, rows_max) = CELLS_MAX[usize::from(panels.is_some())];
    let (x, columns_max) = match &panels {
        Some(panels) if x.are_times => (x.apart_by(panels), columns_max * panels.words.len()),
        _ => (x, columns_max),
    };
    let subtitle = format!(
        "{} by {} (down) and {} (across){}, {}",
        in_words(&values.name),
        in_words(&y.name),
        in_words(&x.name),
        panels.as_ref().map(|panels| format!(", per {}", in_words(&panels.name))).unwrap_or_default(),
        counted(values.values.len(), "row")
    );
    let mut sheet = Sheet::new(title, subtitle);
    if values.values.is_empty() {
        return Ok(sheet.empty("no rows"));
    }
    // What is sorted within each row or column of each panel is sorted in all of them.
    let within = |codes: &[u32]| -> Vec<(u32, u32)> {
        let panel = |row: usize| panels.as_ref().map_or(0, |panels| panels.codes[row]);
        codes.iter().enumerate().map(|(row, &code)| (code, panel(row))).collect()
    };
    let columns = Side::new(&x, &within(&y.codes), columns_max);
    let rows = Side::new(&y, &within(&x.codes), rows_max);
    let mut matrices = matrices(&values.values, &columns, &rows, panels.as_ref());
    let missing = values.values.iter().filter(|value| value.is_nan()).count();
    if missing > 0 {
        sheet.notes.push(format!("{} without a value.", counted(missing, "row")));
    }
    for (side, words) in [(&columns, &x), (&rows, &y)] {
        if side.merged > 1 {
            sheet.notes.push(format!(
                "{} neighbouring values of {} share a cell: it shows their mean.",
                side.merged, words.name
            ));
        }
    }
    let cells = matrices.iter().map(|matrix| matrix.rows.len() * matrix.columns.len()).max().unwrap_or(0);
    let panels_max = (CELLS_OF_PANELS_MAX / cells.max(1)).clamp(PANELS_MAX, SMALL_PANELS_MAX);
    if matrices.len() > panels_max {
        sheet.notes.push(format!("Not drawn: {}.", counted(matrices.len() - panels_max, "further panel")));
        matrices.truncate(panels_max);
    }
    let range = Range::of(palette, matrices.iter().flat_map(|matrix| matrix.cells.iter().flatten().copied()));
    let range = range.between(palette, chart.amount("from"), chart.amount("to")).ok_or(ChartError::NoScale)?;
    let beyond = matrices.iter().flat_map(|matrix| matrix.cells.iter().flatten());
    let beyond = beyond.filter(|value| **value < range.from || **value > range.to).count();
    if !range.is_log && beyond > 0 {
        sheet.notes.push(format!("Beyond the ends of the colours: {}.", counted(beyond, "cell")));
    }
    if range.is_log {
        sheet.notes.push("Logarithmic scale of colours: few values are much larger than all others.".to_owned());
    }
    let named = panels.is_some();
    if chart.flag("totals") {
        sheet.notes.push("Grey bars: the sums of rows and columns.".to_owned());
    }
    let picture = Picture::new(&columns, &rows, &matrices, named, chart.flag("totals"), sheet.top());
    let style = format!("{}{}{STYLE}", super::palette::style(), palette.style());
    let shares = Shares::of(&values, values.values.iter().copied());
    let look = Look { picture: &picture, quantity: values.quantity, range, named, shares };
    Ok(sheet.draw(picture.bottom, &style, |svg| {
        look.key(svg, sheet.top());
        for (index, matrix) in matrices.iter().enumerate() {
            look.matrix(svg, matrix, index);
        }
    }))
}

/// The categories of rows or columns.
struct Side {
    /// What they are called, and what is written beside them.
    words: Vec<String>,
    labels: Vec<String>,
    /// By row of the answer.
    places: Vec<usize>,
    /// Categories per cell.
    merged: usize,
    ordered: bool,
}

impl Side {
    fn new(words: &Words, groups: &[(u32, u32)], most: usize) -> Side {
        let order = words.in_order_within(groups);
        let merged = order.len().div_ceil(most).max(1);
        let mut place = vec![0; order.len()];
        for (index, &code) in order.iter().enumerate() {
            place[code as usize] = index / merged;
        }
        let first = |of: &[String]| -> Vec<String> {
            order.chunks(merged).map(|codes| shown(&of[codes[0] as usize]).to_owned()).collect()
        };
        let (labels, names) = (fitted_apart(&first(&words.labels), LABELS_MAX), first(&words.words));
        let places = words.codes.iter().map(|&code| place[code as usize]).collect();
        Side { words: names, labels, places, merged, ordered: words.are_on_a_scale() }
    }

    fn labels_of(&self, places: &[usize]) -> Vec<String> {
        places.iter().map(|&place| self.labels[place].clone()).collect()
    }
}

fn matrices(values: &[f64], columns: &Side, rows: &Side, panels: Option<&Words>) -> Vec<Matrix> {
    let order = panels.map(Words::in_order).unwrap_or_else(|| vec![0]);
    let mut place = vec![0usize; order.len()];
    for (index, &code) in order.iter().enumerate() {
        place[code as usize] = index;
    }
    let shared = (columns.merged * rows.merged) as f64;
    let empty = || vec![vec![f64::NAN; columns.labels.len()]; rows.labels.len()];
    let name = |code: u32| panels.map(|panels| panels.words[code as usize].clone()).unwrap_or_default();
    let panel_of = |row: usize| panels.map_or(0, |panels| place[panels.codes[row] as usize]);
    let drawn = |side: &Side| {
        let places = side.places.iter().enumerate().map(|(row, &place)| (panel_of(row), place));
        shared_places(places, order.len(), side.labels.len())
    };
    let (rows_of, columns_of) = (drawn(rows), drawn(columns));
    let mut matrices: Vec<Matrix> = (order.into_iter().zip(rows_of).zip(columns_of))
        .map(|((code, rows), columns)| Matrix { name: name(code), cells: empty(), rows, columns, shared })
        .collect();
    for (row, &value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let cell = &mut matrices[panel_of(row)].cells[rows.places[row]][columns.places[row]];
        *cell = if cell.is_nan() { value } else { *cell + value };
    }
    if shared > 1.0 {
        matrices.iter_mut().flat_map(|matrix| matrix.cells.iter_mut().flatten()).for_each(|cell| *cell /= shared);
    }
    matrices
}

/// The places that each panel draws: its own, and those of all panels that share one with it, directly or through others.
fn shared_places(places: impl Iterator<Item = (usize, usize)>, panels: usize, count: usize) -> Vec<Vec<usize>> {
    let mut has = vec![vec![false; count]; panels];
    places.for_each(|(panel, place)| has[panel][place] = true);
    // Per group of panels what it has; a panel joins all groups that it shares a place with.
    let mut groups: Vec<(Vec<usize>, Vec<bool>)> = Vec::new();
    for (panel, own) in has.into_iter().enumerate() {
        let mut joined = (vec![panel], own);
        groups.retain_mut(|(members, theirs)| {
            let shares = theirs.iter().zip(&joined.1).any(|(a, b)| *a && *b);
            if shares {
                joined.0.append(members);
                joined.1.iter_mut().zip(theirs).for_each(|(to, from)| *to |= *from);
            }
            !shares
        });
        groups.push(joined);
    }
    let mut drawn = vec![Vec::new(); panels];
    for (members, has) in &groups {
        for &member in members {
            drawn[member] = (0..count).filter(|&place| has[place]).collect();
        }
    }
    drawn
}

/// Where the panels stand.
struct Picture<'a> {
    rows: &'a Side,
    columns: &'a Side,
    cell_width: f64,
    cell_height: f64,
    /// Room for totals above and at the right; 0 = none.
    totals: f64,
    /// Room for the names of rows, and for all of a panel.
    labels: f64,
    room: f64,
    /// Left upper corner of each panel's cells.
    corners: Vec<(f64, f64)>,
    bottom: f64,
}

impl<'a> Picture<'a> {
    fn new(columns: &'a Side, rows: &'a Side, matrices: &[Matrix], named: bool, totals: bool, top: f64) -> Picture<'a> {
        const BETWEEN: f64 = 26.0;
        const KEY: f64 = 30.0;
        let panels = matrices.len();
        let most_rows = matrices.iter().map(|matrix| matrix.rows.len()).max().unwrap_or(1) as f64;
        let most_columns = matrices.iter().map(|matrix| matrix.columns.len()).max().unwrap_or(1) as f64;
        let across = match panels {
            0 | 1 => 1,
            2 | 4 | 8 => 2,
            _ => 3,
        };
        let down = panels.div_ceil(across).max(1);
        let totals = if totals { TOTAL } else { 0.0 };
        let beside = if totals > 0.0 { totals + 66.0 } else { 0.0 };
        let labels = rows.labels.iter().map(|label| text_width(label)).fold(0.0, f64::max) + 8.0;
        let room = (WIDTH - 2.0 * MARGIN - (across - 1) as f64 * BETWEEN) / across as f64;
        let cell_width = ((room - labels - beside) / most_columns).min(CELL_WIDTH_MAX);
        let least = if down > 1 { 2.0 } else { 3.0 };
        let cell_height = (HEIGHT / down as f64 / most_rows).clamp(least, CELL_HEIGHT_MAX);
        let names = |matrix: &Matrix| Categories::new(&columns.labels_of(&matrix.columns), cell_width, columns.ordered);
        let names_height = matrices.iter().map(|matrix| names(matrix).height()).fold(0.0, f64::max);
        let title = if named { 20.0 } else { 0.0 };
        let panel_height = title + totals + cell_height * most_rows + names_height + 14.0;
        let corners = (0..panels)
            .map(|index| {
                let x = MARGIN + (index % across) as f64 * (room + BETWEEN) + labels;
                (x, top + KEY + (index / across) as f64 * panel_height + title + totals)
            })
            .collect();
        let bottom = top + KEY + down as f64 * panel_height;
        Picture { rows, columns, cell_width, cell_height, totals, labels, room, corners, bottom }
    }
}

/// How values look.
struct Look<'a> {
    picture: &'a Picture<'a>,
    quantity: Quantity,
    range: Range,
    named: bool,
    shares: Shares,
}

impl Look<'_> {
    /// The colours with the values they stand for.
    fn key(&self, svg: &mut Svg, top: f64) {
        const STEP: f64 = 9.0;
        let (least, most) = (self.quantity.text(self.range.from), self.quantity.text(self.range.to));
        let x = MARGIN + text_width(&least) + 6.0;
        let (y, base) = (top + 2.0, top + 11.5);
        svg.words("pale", MARGIN, base, "start", &least);
        for shade in 0..SHADES {
            let x = x + shade as f64 * STEP;
            svg.bar(&format!("h{shade}"), Rectangle { x, y, width: STEP, height: 11.0 }, "");
        }
        svg.words("pale", x + SHADES as f64 * STEP + 6.0, base, "start", &most);
    }

    fn matrix(&self, svg: &mut Svg, matrix: &Matrix, index: usize) {
        let Picture { rows, columns, cell_width, cell_height, totals, labels, room, .. } = *self.picture;
        let (left, top) = self.picture.corners[index];
        let width = cell_width * matrix.columns.len() as f64;
        let height = cell_height * matrix.rows.len() as f64;
        if self.named {
            // Bold letters are wider. A name that is too long above the cells begins above the names of their rows.
            let widened = |width: f64| width / 1.12;
            let fits = text_width(shown(&matrix.name)) <= widened(room - labels);
            let (x, room) = if fits { (left, room - labels) } else { (left - labels, room) };
            let name = fitted_middle(shown(&matrix.name), widened(room));
            svg.words("ink bold", x, top - totals - 7.0, "start", &name);
        }
        let mut free_from = f64::MIN;
        for (row, label) in matrix.rows.iter().map(|&row| &rows.labels[row]).enumerate() {
            let middle = top + (row as f64 + 0.5) * cell_height;
            if middle - FONT_SIZE / 2.0 >= free_from {
                free_from = middle + FONT_SIZE / 2.0;
                svg.words("pale", left - 6.0, middle + FONT_SIZE * 0.35, "end", label);
            }
        }
        svg.bar("none", Rectangle { x: left, y: top, width, height }, "");
        let (gap_x, gap_y) = (if cell_width >= 8.0 { 1.0 } else { 0.0 }, if cell_height >= 8.0 { 1.0 } else { 0.0 });
        // All values or none: the largest have the longest texts, and a reader looks for those.
        let values = matrix.cells.iter().flatten().filter(|value| !value.is_nan());
        let widest = values.map(|value| text_width(&self.quantity.text(*value))).fold(0.0, f64::max);
        let has_texts = cell_height >= 14.0 && widest + 2.0 <= cell_width - gap_x;
        for (row, &of_rows) in matrix.rows.iter().enumerate() {
            let cells = matrix.columns.iter().map(|&place| (place, matrix.cells[of_rows][place])).enumerate();
            for (column, (of_columns, value)) in cells.filter(|(_, (_, value))| !value.is_nan()) {
                let (x, y) = (left + column as f64 * cell_width, top + row as f64 * cell_height);
                let (width, height) = (cell_width - gap_x, cell_height - gap_y);
                let shade = self.range.shade(value);
                let text = self.quantity.text(value);
                let share = self.shares.text(value);
                let tooltip = format!("{}, {}: {text}{share}", rows.words[of_rows], columns.words[of_columns]);
                svg.bar(&format!("h{shade}"), Rectangle { x, y, width, height }, &tooltip);
                if has_texts {
                    let base = y + height / 2.0 + FONT_SIZE * 0.35;
                    svg.words(&format!("g{shade}"), x + width / 2.0, base, "middle", &text);
                }
            }
        }
        let names = Categories::new(&columns.labels_of(&matrix.columns), cell_width, columns.ordered);
        names.draw(svg, top + height, |column| left + (column as f64 + 0.5) * cell_width);
        if totals > 0.0 {
            self.totals(svg, matrix, (left, top), width);
        }
    }

    /// Sums of the rows at the right, of the columns above, of all in the corner.
    fn totals(&self, svg: &mut Svg, matrix: &Matrix, (left, top): (f64, f64), width: f64) {
        let Picture { rows, columns, cell_width, cell_height, totals, .. } = *self.picture;
        let sum =
            |cells: &mut dyn Iterator<Item = f64>| cells.filter(|value| !value.is_nan()).sum::<f64>() * matrix.shared;
        let of_rows: Vec<f64> = matrix.cells.iter().map(|cells| sum(&mut cells.iter().copied())).collect();
        let of_columns: Vec<f64> =
            (0..columns.labels.len()).map(|column| sum(&mut matrix.cells.iter().map(|cells| cells[column]))).collect();
        let most = |sums: &[f64]| sums.iter().copied().map(f64::abs).fold(0.0, f64::max);
        let (widest, highest) = (most(&of_rows), most(&of_columns));
        let share = |value: f64, most: f64| if most > 0.0 { value.abs() / most } else { 0.0 };
        let mut free_from = f64::MIN;
        // Rows of other panels have no sum here.
        let has_cells = |row: usize| matrix.cells[row].iter().any(|value| !value.is_nan());
        for (place, &row) in matrix.rows.iter().enumerate().filter(|&(_, &row)| has_cells(row)) {
            let value = of_rows[row];
            let (x, y) = (left + width + 6.0, top + place as f64 * cell_height);
            let length = share(value, widest) * totals;
            let (text, height) = (self.quantity.text(value), (cell_height - 1.0).max(0.7));
            let tooltip = format!("{}, all: {text}{}", rows.words[row], self.shares.text(value));
            svg.bar(&format!("f{HUES}"), Rectangle { x, y, width: length, height }, &tooltip);
            let middle = y + cell_height / 2.0;
            if middle - FONT_SIZE / 2.0 >= free_from {
                free_from = middle + FONT_SIZE / 2.0;
                svg.words("pale", x + length + 4.0, middle + FONT_SIZE * 0.35, "start", &text);
            }
        }
        let bars: Vec<Rectangle> = (matrix.columns.iter().enumerate())
            .map(|(place, &column)| {
                let height = share(of_columns[column], highest) * (totals - 22.0);
                let x = left + place as f64 * cell_width;
                Rectangle { x, y: top - 6.0 - height, width: (cell_width - 1.0).max(0.7), height }
            })
            .collect();
        for (rectangle, &column) in bars.iter().zip(&matrix.columns) {
            let text = self.quantity.text(of_columns[column]);
            let tooltip = format!("all, {}: {text}{}", columns.words[column], self.shares.text(of_columns[column]));
            svg.bar(&format!("f{HUES}"), *rectangle, &tooltip);
        }
        for place in with_room(&bars, |place| text_width(&self.quantity.text(of_columns[matrix.columns[place]]))) {
            let bar = bars[place];
            let text = self.quantity.text(of_columns[matrix.columns[place]]);
            svg.words("pale", bar.x + bar.width / 2.0, bar.y - 4.0, "middle", &text);
        }
        let all = self.quantity.text(of_rows.iter().sum());
        svg.words("ink", left + width + 6.0, top - 8.0, "start", &format!("all: {all}"));
    }
}

/// Which bars have room for a text of that width above them, the highest first: one that touches neither a higher bar nor a text that stands.
fn with_room(bars: &[Rectangle], width: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..bars.len()).collect();
    order.sort_by(|&a, &b| bars[a].y.total_cmp(&bars[b].y));
    let mut standing: Vec<(f64, f64, f64)> = Vec::new();
    order.retain(|&place| {
        let bar = bars[place];
        let (middle, half) = (bar.x + bar.width / 2.0, width(place) / 2.0 + 2.0);
        let (from, to, y) = (middle - half, middle + half, bar.y);
        let meets = |other: &Rectangle| other.x < to && from < other.x + other.width && other.y < y;
        let touches = |&(start, end, base): &(f64, f64, f64)| start < to && from < end && (base - y).abs() < FONT_SIZE;
        let free = !bars.iter().any(meets) && !standing.iter().any(touches);
        if free {
            standing.push((from, to, y));
        }
        free
    });
    order
}
