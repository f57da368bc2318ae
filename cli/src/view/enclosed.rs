//! The page without a server: all that it can show in one document, for a report that is sent to somebody.
//!
//! The document holds, packed, what the page would ask the server for: lanes, names, layers, counters, and a pyramid of tiles. The first tile
//! is the whole run; then the tile that sums up the most tasks is halved, again and again, as long as the size limit allows. A tile without
//! sums is exact at every zoom.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tq_udfs::ticks::time_text;

use super::counters::Counters;
use super::model::{Frame, Model};
use super::tile::{self, Cut};
use super::{answers, assets};
use crate::connection::Connection;
use crate::errors::{Failure, Problem};
use crate::report::html::TimeLine;
use crate::text::base64::base64;
use crate::text::words::bytes_text;

/// Bins of a tile: the pixels of a wide page.
const BINS: usize = 1024;
/// What a name takes beside its letters: its kind, colour and number of tasks.
const BYTES_OF_NAME: usize = 8;
/// Tiles that do not fit until the rest is taken for full.
const MISSES: usize = 8;
/// No layer takes more than this part of the bytes.
const PART_OF_LAYER: usize = 8;

/// The page of what a connection has open, in about so many bytes of data; `None` where nothing has a time.
///
/// # Errors
/// The tasks do not fit into memory, or the coarsest picture into the bytes.
pub(crate) fn page(connection: &mut Connection, bytes_max: usize) -> Result<Option<TimeLine>, Failure> {
    // What a layer lacks is no news: it is not offered then.
    let connection = &mut connection.beside()?;
    let mut model = Model::read(connection)?;
    let counters = Counters::read(connection, &model)?;
    let of_counters = counters.reach(Frame::as_recorded(&model));
    model.extend_reach([of_counters, None]);
    let Some((from, to)) = model.reach else { return Ok(None) };
    let mut left = Budget { bytes: bytes_max };
    let mut answers = serde_json::Map::new();
    let info = answers::info(connection, &model)?;
    let begins_with = [
        ("info", packed(info.to_string().as_bytes())?),
        ("lanes", packed(&model.lane_columns(Frame::as_recorded(&model)).finish())?),
        ("busy", packed(&model.busy_columns(Frame::as_recorded(&model)).finish())?),
        ("counters", packed(&counters.columns().finish())?),
    ];
    for (name, text) in begins_with {
        left.take(&text).ok_or_else(|| too_large(bytes_max))?;
        answers.insert(name.to_owned(), text.into());
    }
    let first = Piece::of(&model, from, to)?.ok_or_else(|| too_large(bytes_max))?;
    let mut names = HashSet::new();
    left.take(&first.data).ok_or_else(|| too_large(bytes_max))?;
    left.take_names(&model, &first, &mut names).ok_or_else(|| too_large(bytes_max))?;
    for (name, title, sql) in answers::LAYERS {
        // A layer is one more thing to see: what has none, or too much of it, is no reason to show nothing.
        let spans = match answers::layer(connection, Frame::as_recorded(&model), title, sql) {
            Err(Failure::Told(_)) => continue,
            spans => spans?,
        };
        if spans.rows_of("spans") == 0 || spans.said("complete") != Some(&json!(true)) {
            continue;
        }
        let text = packed(&spans.finish())?;
        if text.len() <= bytes_max / PART_OF_LAYER && left.take(&text).is_some() {
            answers.insert(format!("layer?name={name}"), text.into());
        }
    }
    let mut enclosed_counters = Vec::new();
    for number in 0..counters.len() {
        let Some(columns) = counters.tile(Frame::as_recorded(&model), number, from, to, BINS) else { continue };
        let text = packed(&columns.finish())?;
        if left.take(&text).is_none() {
            break;
        }
        enclosed_counters.push(json!({"number": number, "data": text}));
    }
    let Pyramid { tiles, summed_below } = pyramid(&model, first, &mut left, &mut names)?;
    answers.insert("names".to_owned(), packed(&model.name_columns(|name| names.contains(&name)).finish())?.into());
    let tick = connection.session().tick();
    let detail = summed_below.map(|ticks| {
        let ticks = time_text(i64::try_from(ticks).unwrap_or(i64::MAX), tick);
        format!("Tasks shorter than {ticks} are summed up in parts of this file; tq view shows each of them")
    });
    let data = json!({
        "answers": answers,
        "counters": enclosed_counters,
        "tiles": tiles.iter().map(Piece::json).collect::<Vec<_>>(),
        "detail": detail,
    });
    // No text ends the element that it stands in.
    let data = data.to_string().replace('<', "\\u003c");
    Ok(Some(assets::whole(
        &format!("<script type=\"application/json\" id=\"tq-data\">{data}</script>"),
        height(&model),
    )?))
}

/// Pixels for all rows, within what leaves room for a panel and does not fill the report.
fn height(model: &Model) -> usize {
    const FRAME: usize = 200;
    const LANE: usize = 24;
    const ROW: usize = 18;
    let rows = (0..model.lanes.len()).map(|lane| LANE.max(ROW * model.rows(lane)));
    rows.fold(FRAME, usize::saturating_add).clamp(420, 720)
}

fn too_large(bytes: usize) -> Problem {
    Problem::new(format!("the time line does not fit into {}, even at its coarsest", bytes_text(bytes)))
        .hint("`--timeline-size 8MB` allows more; `--from` and `--to`, or fewer traces, show less; `--no-timeline` leaves it out")
}

/// Bytes that may still be used.
struct Budget {
    bytes: usize,
}

impl Budget {
    fn take(&mut self, text: &str) -> Option<()> {
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(())
    }

    /// The bytes of names that a tile is the first to have.
    fn of_names(model: &Model, piece: &Piece, known: &HashSet<u32>) -> usize {
        piece.names.difference(known).map(|name| model.names[*name as usize].text.len() + BYTES_OF_NAME).sum()
    }

    fn take_names(&mut self, model: &Model, piece: &Piece, known: &mut HashSet<u32>) -> Option<()> {
        self.bytes = self.bytes.checked_sub(Budget::of_names(model, piece, known))?;
        known.extend(&piece.names);
        Some(())
    }
}

/// Tiles, and below what length tasks are in none of them themselves, somewhere.
struct Pyramid {
    tiles: Vec<Piece>,
    summed_below: Option<u64>,
}

/// A tile of the pyramid.
struct Piece {
    from: i64,
    to: i64,
    /// Tasks that it sums up and that a closer look would draw.
    summed: u64,
    names: HashSet<u32>,
    data: String,
}

impl Piece {
    /// The tile of all lanes; `None` when a bin would be longer than a BIGINT.
    fn of(model: &Model, from: i64, to: i64) -> Result<Option<Piece>, Failure> {
        let lanes = (0..).take(model.lanes.len()).map(tile::LaneRows::all).collect();
        let Some(Cut { columns, summed, names }) =
            tile::cut(Frame::as_recorded(model), &tile::Asked { from, to, bins: BINS, lanes })?
        else {
            return Ok(None);
        };
        Ok(Some(Piece { from, to, summed, names, data: packed(&columns.finish())? }))
    }

    /// Its halves; none where it is exact, or where a bin is a single tick already.
    fn halves(&self, model: &Model) -> Result<Vec<Piece>, Failure> {
        if self.summed == 0 || self.from.abs_diff(self.to) <= BINS as u64 {
            return Ok(Vec::new());
        }
        let middle = self.from + (self.from.abs_diff(self.to) / 2) as i64;
        let halves = [(self.from, middle), (middle, self.to)].map(|(from, to)| Piece::of(model, from, to));
        halves.into_iter().filter_map(Result::transpose).collect()
    }

    fn json(&self) -> Value {
        json!({"from": self.from.to_string(), "to": self.to.to_string(), "data": self.data})
    }
}

impl PartialEq for Piece {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Piece {}

impl PartialOrd for Piece {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Piece {
    /// Those that hide more tasks are greater; of equal ones the longer, then the earlier.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |piece: &Piece| (piece.summed, piece.from.abs_diff(piece.to), Reverse(piece.from));
        key(self).cmp(&key(other))
    }
}

/// From the first tile on, both halves of the one that hides the most, until the bytes are used up; coarse tiles first.
fn pyramid(model: &Model, first: Piece, left: &mut Budget, names: &mut HashSet<u32>) -> Result<Pyramid, Failure> {
    let (mut tiles, mut open) = (Vec::new(), BinaryHeap::from([first]));
    let (mut summed_below, mut misses) = (None, 0);
    while let Some(piece) = open.pop() {
        let halves = piece.halves(model)?;
        let bytes: usize = halves.iter().map(|half| half.data.len() + Budget::of_names(model, half, names)).sum();
        let is_full = bytes > left.bytes;
        if piece.summed > 0 && (halves.is_empty() || is_full) {
            summed_below = summed_below.max(Some(tile::least_drawn(piece.from, piece.to, BINS)));
        }
        tiles.push(piece);
        if is_full {
            misses += 1;
            // Others may be smaller; each look costs a cut.
            if misses == MISSES {
                break;
            }
            continue;
        }
        left.bytes -= bytes;
        names.extend(halves.iter().flat_map(|half| &half.names));
        open.extend(halves);
    }
    let rest = open.iter().filter(|piece| piece.summed > 0);
    let summed_below = rest.map(|piece| tile::least_drawn(piece.from, piece.to, BINS)).max().max(summed_below);
    tiles.extend(open);
    tiles.sort_by_key(|tile| (Reverse(tile.from.abs_diff(tile.to)), tile.from));
    Ok(Pyramid { tiles, summed_below })
}

/// As text, in as few bytes as that allows.
fn packed(bytes: &[u8]) -> Result<String, Failure> {
    let mut packer = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::best());
    packer.write_all(bytes)?;
    Ok(base64(&packer.finish()?))
}
