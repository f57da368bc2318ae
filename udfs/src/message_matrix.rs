//! `message_matrix(messages, locations)`: who sends how much to whom.
//!
//! Life of the data: each batch of messages is reduced to a row per pair (`combine_pairs`) and added to the matrix of its run;
//! no message is kept. Senders and receivers are numbered ([`Words`]), and a matrix grows when a new one appears. At the end each
//! matrix is emitted row by row, with the totals of its rows and columns. Locations that neither send nor receive have rows of 0.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::words::{Words, WordsReading};
use crate::relation::call::{Call, Options, Work, column};
use crate::relation::rows::{EVERY_RUN, Role, Rows, without_null};
use crate::relation::runs::{Reading, Runs, equal_keys};
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter, Part, RelationFunction};

/// The relation function `message_matrix`.
#[derive(Debug)]
pub struct MessageMatrix;

static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "messages",
        omitted: Omitted::Table("messages"),
        columns: &[
            ColumnSpec::needed("source", ColumnKind::Text),
            ColumnSpec::needed("target", ColumnKind::Text),
            ColumnSpec::optional("count", ColumnKind::Integer),
            ColumnSpec::optional("bytes", ColumnKind::Integer),
        ],
    }),
    Parameter::Input(InputSpec {
        name: "locations",
        omitted: Omitted::Table("locations"),
        columns: &[ColumnSpec::needed("location", ColumnKind::Text)],
    }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "Who sends how much to whom: messages and bytes for every pair of locations, also those that never sent or received.\n\n\
         Rows: per run that has messages, one for each source and target among its `locations` and the ends of its messages. \
         `count` is the number of messages (the sum of the column `count`, where a row stands for several), `bytes` their \
         size, `source_total` the number of messages that the source sends to all, `target_total` the number that the target \
         receives from all. Give the locations that can send: `(SELECT * FROM locations WHERE kind = 'pe')`; with \
         `(SELECT * FROM locations WHERE false)` only the ends of messages are included. A `locations` \
         without `run` is for every run.\n\n\
         Units: bytes in `bytes`, messages in the others.\n\n\
         Nulls: a message without source or target is left out and counted in a note. A NULL `count` is one message, NULL \
         `bytes` are 0.\n\n\
         Ties: none.\n\n\
         Errors: more than 67108864 pairs in a run, a sum beyond BIGINT.\n\n\
         Cost: linear in messages and pairs; 16 bytes a pair.\n\n\
         Source: the communication matrix of trace viewers; as ActorProf's heat maps.",
        "message_matrix([messages], [locations])",
    )
    .with_sql_example(
        "SELECT source, target, count, bytes, source_total, target_total FROM message_matrix(\n  \
         (SELECT * FROM (VALUES ('pe 0', 'pe 1', 8), ('pe 0', 'pe 1', 24)) AS messages(source, target, bytes)),\n  \
         (SELECT * FROM (VALUES ('pe 0'), ('pe 1')) AS locations(location)))\nORDER BY source, target",
    )
    .with_argument("messages", "Relation: source, target (locations, VARCHAR); optional run, count, bytes (BIGINT).")
    .with_argument("locations", "Relation: location (VARCHAR); optional run.")
    .build()
});

impl RelationFunction for MessageMatrix {
    fn name(&self) -> &'static str {
        "message_matrix"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("source", DataType::Utf8View, false),
            Field::new("target", DataType::Utf8View, false),
            Field::new("count", DataType::Int64, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("source_total", DataType::Int64, false),
            Field::new("target_total", DataType::Int64, false),
        ]
    }

    fn part(&self, input: &str, _: &Options) -> Result<Option<Part>> {
        let add_up = |batch: RecordBatch, _: &AtomicUsize| Ok(combine_pairs(&batch)?.unwrap_or(batch));
        Ok((input == "messages").then(|| Arc::new(add_up) as Part))
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut runs = Runs::new();
        let mut words = Words::default();
        let mut squares = add_up(call, &mut runs, &mut words)?;
        let silent = locations(call, &mut runs, &mut words)?;
        for run in runs.in_order() {
            let square = std::mem::take(&mut squares[run]);
            let bytes = square.bytes_held();
            // The locations that can send first, then those that only messages name.
            let mut order: Vec<u32> = Vec::new();
            let mut listed = vec![false; words.len()];
            let given =
                silent.iter().filter(|(of_run, _)| *of_run == run || *of_run == EVERY_RUN).map(|(_, word)| *word);
            let mut named = square.words.clone();
            named.sort_unstable_by_key(|word| words.text(*word));
            for word in given.chain(named) {
                if !std::mem::replace(&mut listed[word as usize], true) {
                    order.push(word);
                }
            }
            check_pairs(order.len())?;
            emit(call, &runs, run, &words, &square, &order)?;
            call.work.shrink(bytes);
        }
        Ok(())
    }
}

const PAIRS_MAX: usize = 1 << 26;

fn check_pairs(locations: usize) -> Result<()> {
    match locations.saturating_mul(locations) {
        pairs if pairs > PAIRS_MAX => {
            exec_err!("message_matrix: {locations} locations make {pairs} pairs; at most {PAIRS_MAX} are possible")
        }
        _ => Ok(()),
    }
}

/// What the messages of one pair are together while a batch is read through.
#[derive(Debug, Default, Clone, Copy)]
struct Pair {
    rows: i64,
    count: i64,
    bytes: i64,
}

/// A row for each pair of a batch, in place of the rows of its messages. `None` where that is not worth it, with nearly as
/// many pairs as messages, or where batches are read through as they are: ends that are no words, NULLs among them, several
/// runs, sums beyond BIGINT.
fn combine_pairs(batch: &RecordBatch) -> Result<Option<RecordBatch>> {
    let rows = batch.num_rows();
    let (sources, targets) = (plain_words(column(batch, "source")?), plain_words(column(batch, "target")?));
    let (Some(sources), Some(targets)) = (sources, targets) else { return Ok(None) };
    let run = match batch.column_by_name("run") {
        None => None,
        Some(run) => match plain_words(run) {
            Some(of_rows) if equal_keys(of_rows).len() == 1 => Some(of_rows),
            _ => return Ok(None),
        },
    };
    let (source_keys, target_keys) = (span(sources.keys()), span(targets.keys()));
    let width = target_keys.len();
    let places = source_keys.len().saturating_mul(width);
    if places > rows / PAIR_ROWS {
        return Ok(None);
    }
    let integers = |name: &str| batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>());
    let (counts, sizes) = (integers("count"), integers("bytes"));
    if [counts, sizes].into_iter().flatten().any(|column| column.null_count() > 0) {
        return Ok(None);
    }
    let (counts, sizes) = (plain(counts), plain(sizes));
    let mut pairs = vec![Pair::default(); places];
    let (source_of, target_of) = (&sources.keys().values()[..], &targets.keys().values()[..]);
    let (mut from, mut of_target) = (0, 0);
    while from < rows {
        // Programs mostly send to the target of the message before.
        if from == of_target {
            of_target += stretch(&target_of[from..]);
        }
        let of_pair = from..from + stretch(&source_of[from..of_target]);
        let (source, target) = (source_of[from] as usize, target_of[from] as usize);
        let pair = &mut pairs[(source - source_keys.start) * width + (target - target_keys.start)];
        let count = counts.map_or(Some(of_pair.len() as i64), |counts| sum(&counts[of_pair.clone()]));
        let bytes = sizes.map_or(Some(0), |sizes| sum(&sizes[of_pair.clone()]));
        let sums = (
            count.and_then(|count| pair.count.checked_add(count)),
            bytes.and_then(|bytes| pair.bytes.checked_add(bytes)),
        );
        let (Some(count), Some(bytes)) = sums else { return Ok(None) };
        *pair = Pair { rows: pair.rows + of_pair.len() as i64, count, bytes };
        from = of_pair.end;
    }
    let met = || pairs.iter().enumerate().filter(|(_, pair)| pair.rows > 0);
    let keys = |key: &dyn Fn(usize) -> usize| Int32Array::from_iter_values(met().map(|(place, _)| key(place) as i32));
    let sums = |sum: fn(&Pair) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(met().map(|(_, pair)| sum(pair))))
    };
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("source", of_words(keys(&|place| source_keys.start + place / width), sources)?),
        ("target", of_words(keys(&|place| target_keys.start + place % width), targets)?),
        ("count", sums(|pair| pair.count)),
        ("bytes", sums(|pair| pair.bytes)),
    ];
    if let Some(run) = run {
        columns.push(("run", Arc::new(run.slice(0, met().count()))));
    }
    Ok(Some(RecordBatch::try_from_iter(columns)?))
}

/// How many values at the beginning are the same.
#[inline]
fn stretch(keys: &[i32]) -> usize {
    let Some((first, others)) = keys.split_first() else { return 0 };
    // One row, or hundreds: whole blocks are compared at once.
    if others.first() != Some(first) {
        return 1;
    }
    let is_same = |block: &&[i32]| block.iter().fold(0, |differences, key| differences | (key ^ first)) == 0;
    let same: usize = others.chunks(KEYS_AT_ONCE).take_while(is_same).map(<[i32]>::len).sum();
    let rest = &others[same..];
    1 + same + rest.iter().position(|key| key != first).unwrap_or(rest.len())
}

/// So many keys fill some registers.
const KEYS_AT_ONCE: usize = 32;

/// The sum of some values; `None` when it does not fit.
#[inline]
fn sum(values: &[i64]) -> Option<i64> {
    if let [value] = values {
        return Some(*value);
    }
    // Values of at most 40 bits, fewer than 2^22 of them, cannot go beyond 62 bits: then nothing needs to be checked on the way.
    let add = |(sum, bits): (i64, i64), value: &i64| (sum.wrapping_add(*value), bits | (value ^ (value >> 63)));
    let (sum, bits) = values.iter().fold((0, 0), add);
    if bits >> 40 == 0 && values.len() >> 22 == 0 {
        return Some(sum);
    }
    values.iter().try_fold(0i64, |sum, value| sum.checked_add(*value))
}

/// Rows that a pair must stand for, on average, to be worth adding them up.
const PAIR_ROWS: usize = 4;

/// A column of words without NULLs.
fn plain_words(column: &ArrayRef) -> Option<&DictionaryArray<Int32Type>> {
    let words = column.as_dictionary_opt::<Int32Type>()?;
    (words.null_count() == 0 && words.values().null_count() == 0 && !words.is_empty()).then_some(words)
}

/// The least to the largest of some keys.
fn span(keys: &Int32Array) -> Range<usize> {
    let ends = |(least, most): (i32, i32), key: &i32| (least.min(*key), most.max(*key));
    let (least, most) = keys.values().iter().fold((i32::MAX, i32::MIN), ends);
    least as usize..most as usize + 1
}

/// Other keys into the same words, which readers know again.
fn of_words(keys: Int32Array, words: &DictionaryArray<Int32Type>) -> Result<ArrayRef> {
    Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(words.values()))?))
}

/// The sums of the pairs of a run while its messages are read through.
#[derive(Debug, Default)]
struct Square {
    /// By place: the word of a location.
    words: Vec<u32>,
    /// By word: its place.
    places: Vec<u32>,
    /// How many places there is room for.
    side: usize,
    /// Messages and bytes by place of the source, then of the target.
    sums: Vec<(i64, i64)>,
}

impl Square {
    fn bytes_held(&self) -> usize {
        self.sums.len() * size_of::<(i64, i64)>()
    }

    #[inline(always)]
    fn place(&mut self, word: u32, work: &mut Work) -> Result<usize> {
        match self.places.get(word as usize) {
            Some(place) if *place != NONE => Ok(*place as usize),
            _ => self.new_place(word, work),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_place(&mut self, word: u32, work: &mut Work) -> Result<usize> {
        if self.places.len() <= word as usize {
            self.places.resize(word as usize + 1, NONE);
        }
        let place = self.words.len();
        self.words.push(word);
        self.places[word as usize] = place as u32;
        if place == self.side {
            self.widen(work)?;
        }
        Ok(place)
    }

    /// Makes room for twice as many places.
    fn widen(&mut self, work: &mut Work) -> Result<()> {
        check_pairs(self.words.len())?;
        let (before, side) = (self.side, (self.side * 2).max(16));
        let held = self.bytes_held();
        work.grow(side * side * size_of::<(i64, i64)>())?;
        let mut sums = vec![(0, 0); side * side];
        for row in 0..before {
            sums[row * side..row * side + before].copy_from_slice(&self.sums[row * before..(row + 1) * before]);
        }
        (self.side, self.sums) = (side, sums);
        work.shrink(held);
        Ok(())
    }

    /// The sums of a pair of words.
    fn of(&self, source: u32, target: u32) -> (i64, i64) {
        let place = |word: u32| self.places.get(word as usize).copied().filter(|place| *place != NONE);
        match (place(source), place(target)) {
            (Some(source), Some(target)) => self.sums[source as usize * self.side + target as usize],
            _ => (0, 0),
        }
    }
}

/// Reads the messages through; none of them is kept.
fn add_up(call: &mut Call, runs: &mut Runs, words: &mut Words) -> Result<Vec<Square>> {
    let (input, work) = call.input("messages")?;
    let mut squares: Vec<Square> = Vec::new();
    let (mut reading_runs, mut reading) = (Reading::default(), [WordsReading::default(), WordsReading::default()]);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    let (mut left_out, mut noted_bytes) = (0, 0);
    while let Some(batch) = input.next_batch()? {
        work.check()?;
        let batch = without_null(batch, &["source", "target"], &mut left_out)?;
        let stretches = runs.learn(&mut reading_runs, batch.column_by_name("run"), batch.num_rows())?;
        squares.resize_with(runs.len(), Square::default);
        sources.clear();
        targets.clear();
        words.number(&mut reading[0], column(&batch, "source")?, &mut sources)?;
        words.number(&mut reading[1], column(&batch, "target")?, &mut targets)?;
        if words.size() > noted_bytes {
            work.grow(words.size() - noted_bytes)?;
            noted_bytes = words.size();
        }
        let integers = |name: &str| batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>());
        let (counts, bytes) = (integers("count"), integers("bytes"));
        let value = |column: Option<&Int64Array>, row: usize| {
            column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
        };
        // Mostly there are no NULLs: then values are read where they stand.
        let (plain_counts, plain_bytes) = (plain(counts), plain(bytes));
        for stretch in stretches {
            let Some(square) = stretch.run.map(|run| &mut squares[run]) else { continue };
            for row in stretch.rows {
                let source = square.place(sources[row], work)?;
                let target = square.place(targets[row], work)?;
                let sums = &mut square.sums[source * square.side + target];
                let count = plain_counts.map_or_else(|| value(counts, row).unwrap_or(1), |counts| counts[row]);
                let size = plain_bytes.map_or_else(|| value(bytes, row).unwrap_or(0), |bytes| bytes[row]);
                let (count, size) = (sums.0.checked_add(count), sums.1.checked_add(size));
                match (count, size) {
                    (Some(count), Some(size)) => *sums = (count, size),
                    _ => return too_large(),
                }
            }
        }
    }
    work.note_count(
        left_out,
        "message without source or target was left out",
        "messages without source or target were left out",
    );
    Ok(squares)
}

/// The values of a column without NULLs.
fn plain(column: Option<&Int64Array>) -> Option<&[i64]> {
    column.filter(|column| column.null_count() == 0).map(|column| column.values().as_ref())
}

/// The locations: a run, or [`EVERY_RUN`], and a word.
fn locations(call: &mut Call, runs: &mut Runs, words: &mut Words) -> Result<Vec<(usize, u32)>> {
    let locations = Rows::read(call, "locations", Role::Other, &["location"], runs)?;
    let mut reading = WordsReading::default();
    let (mut found, mut numbers) = (Vec::new(), Vec::new());
    for batch in locations.batches() {
        numbers.clear();
        words.number(&mut reading, column(&batch.batch, "location")?, &mut numbers)?;
        for stretch in &batch.stretches {
            if let Some(run) = stretch.run {
                found.extend(numbers[stretch.rows.clone()].iter().map(|word| (run, *word)));
            }
        }
    }
    Ok(found)
}

fn too_large<T>() -> Result<T> {
    exec_err!("message_matrix: a sum does not fit a BIGINT")
}

/// The sums of rows and columns; `None` when one does not fit.
fn totals(square: &Square, order: &[u32]) -> Option<(Vec<i64>, Vec<i64>)> {
    let (mut sources, mut targets) = (vec![0i64; order.len()], vec![0i64; order.len()]);
    for (row, source) in order.iter().enumerate() {
        for (column, target) in order.iter().enumerate() {
            let (count, _) = square.of(*source, *target);
            sources[row] = sources[row].checked_add(count)?;
            targets[column] = targets[column].checked_add(count)?;
        }
    }
    Some((sources, targets))
}

fn emit(call: &mut Call, runs: &Runs, run: usize, words: &Words, square: &Square, order: &[u32]) -> Result<()> {
    let side = order.len();
    let Some((sources, targets)) = totals(square, order) else { return too_large() };
    let texts = take(&words.texts(), &UInt32Array::from(order.to_vec()), None)?;
    // Some rows of the square at a time.
    let lines = (65_536 / side.max(1)).max(1);
    for from in (0..side).step_by(lines) {
        let pairs = from * side..side.min(from + lines) * side;
        call.work.check()?;
        let pick = |of: &dyn Fn(usize) -> u32| -> Result<ArrayRef> {
            let places = UInt32Array::from_iter_values(pairs.clone().map(of));
            Ok(take(&texts, &places, None)?)
        };
        let integers =
            |values: &mut dyn Iterator<Item = i64>| -> ArrayRef { Arc::new(Int64Array::from_iter_values(values)) };
        let sums = |pair: usize| square.of(order[pair / side], order[pair % side]);
        let columns = vec![
            runs.column(&[(run, pairs.len())], call.output().field(0).data_type())?,
            pick(&|pair| (pair / side) as u32)?,
            pick(&|pair| (pair % side) as u32)?,
            integers(&mut pairs.clone().map(|pair| sums(pair).0)),
            integers(&mut pairs.clone().map(|pair| sums(pair).1)),
            integers(&mut pairs.clone().map(|pair| sources[pair / side])),
            integers(&mut pairs.clone().map(|pair| targets[pair % side])),
        ];
        call.emit(columns)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A square of these messages: source, target, count.
    fn square(messages: &[(u32, u32, i64)]) -> Square {
        let (mut square, mut work) = (Square::default(), Work::for_tests());
        for (source, target, count) in messages {
            let source = square.place(*source, &mut work).unwrap();
            let target = square.place(*target, &mut work).unwrap();
            square.sums[source * square.side + target].0 += count;
        }
        assert_eq!(work.size(), square.bytes_held());
        square
    }

    proptest! {
        #[test]
        fn sums_survive_growing_and_totals_are_those_of_rows_and_columns(messages in vec((0..60u32, 0..60u32, 0..9i64), 0..300)) {
            let square = square(&messages);
            let order: Vec<u32> = (0..60).collect();
            let (sources, targets) = totals(&square, &order).unwrap();
            let sum = |keep: &dyn Fn(&(u32, u32, i64)) -> bool| -> i64 {
                messages.iter().filter(|message| keep(message)).map(|message| message.2).sum()
            };
            for one in 0..60u32 {
                prop_assert_eq!(sources[one as usize], sum(&|message| message.0 == one));
                prop_assert_eq!(targets[one as usize], sum(&|message| message.1 == one));
                for other in 0..60u32 {
                    prop_assert_eq!(square.of(one, other).0, sum(&|message| (message.0, message.1) == (one, other)));
                }
            }
        }
    }

    /// Source, target, messages and bytes of each row of a batch.
    fn rows_of(batch: &RecordBatch) -> Vec<(i32, i32, i64, i64)> {
        let key = |name: &str, row| batch[name].as_dictionary::<Int32Type>().keys().value(row);
        let value = |name: &str, row| batch[name].as_primitive::<Int64Type>().value(row);
        let row = |row| (key("source", row), key("target", row), value("count", row), value("bytes", row));
        (0..batch.num_rows()).map(row).collect()
    }

    fn batch_of(runs: Vec<i32>, messages: &[(i32, i32, i64, i64)]) -> RecordBatch {
        let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|word| word.to_string())));
        let column =
            |keys: Vec<i32>| Arc::new(DictionaryArray::<Int32Type>::new(keys.into(), Arc::clone(&words))) as ArrayRef;
        let integers = |value: fn(&(i32, i32, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(messages.iter().map(value)))
        };
        RecordBatch::try_from_iter([
            ("run", column(runs)),
            ("source", column(messages.iter().map(|message| message.0).collect())),
            ("target", column(messages.iter().map(|message| message.1).collect())),
            ("count", integers(|message| message.2)),
            ("bytes", integers(|message| message.3)),
        ])
        .unwrap()
    }

    proptest! {
        #[test]
        fn stretches_are_as_long_as_their_key_stays(keys in vec(0..2i32, 0..90), length in 1..50usize) {
            let keys: Vec<i32> = keys.into_iter().flat_map(|key| std::iter::repeat_n(key, length)).collect();
            let expected = keys.iter().take_while(|key| Some(*key) == keys.first()).count();
            prop_assert_eq!(stretch(&keys), expected);
        }

        #[test]
        fn sums_are_exact_or_refused(values in vec(prop_oneof![-9..9i64, any::<i64>()], 0..40)) {
            let exact: i128 = values.iter().map(|value| i128::from(*value)).sum();
            // A sum that leaves the range on the way and comes back may be refused.
            match sum(&values) {
                Some(sum) => prop_assert_eq!(i128::from(sum), exact),
                None => prop_assert!(values.iter().any(|value| value.unsigned_abs() >> 40 != 0)),
            }
        }

        #[test]
        fn messages_of_a_pair_are_one_row(
            least in 0..90i32,
            messages in vec((0..6i32, 0..6i32, 0..9i64, -9..9i64), 200),
            stretch in 1..12usize,
        ) {
            let messages = messages.iter().map(|of| (of.0 + least, of.1 + least, of.2, of.3));
            let messages: Vec<_> = messages.flat_map(|message| std::iter::repeat_n(message, stretch)).collect();
            let rows = rows_of(&combine_pairs(&batch_of(vec![7; messages.len()], &messages)).unwrap().unwrap());
            let mut expected: Vec<(i32, i32, i64, i64)> = vec![];
            for message in &messages {
                match expected.iter_mut().find(|pair| (pair.0, pair.1) == (message.0, message.1)) {
                    Some(pair) => (pair.2, pair.3) = (pair.2 + message.2, pair.3 + message.3),
                    None => expected.push(*message),
                }
            }
            expected.sort_unstable();
            prop_assert_eq!(rows, expected);
        }
    }

    #[test]
    fn batches_that_stay_as_they_are() {
        let messages: Vec<_> = (0..50).map(|message| (3, 4, message, i64::MAX - 2000)).collect();
        let fits = batch_of(vec![7; 1], &messages[..1]);
        assert_eq!(combine_pairs(&fits).unwrap(), None, "a pair for each row");
        assert_eq!(combine_pairs(&batch_of(vec![7; 50], &messages)).unwrap(), None, "too many bytes");
        let messages: Vec<_> = (0..50).map(|message| (3, 4, message, 1)).collect();
        let runs = (0..50).map(|row| i32::from(row > 20)).collect();
        assert_eq!(combine_pairs(&batch_of(runs, &messages)).unwrap(), None, "two runs");
        let whole = batch_of(vec![7; 50], &messages);
        assert_eq!(rows_of(&combine_pairs(&whole).unwrap().unwrap()), [(3, 4, 49 * 25, 50)]);
        let mut columns: Vec<(&str, ArrayRef)> =
            ["source", "target", "bytes"].map(|name| (name, whole[name].clone())).into();
        columns[2].1 = Arc::new(Int64Array::from_iter((0..50).map(|row| (row != 5).then_some(1))));
        assert_eq!(combine_pairs(&RecordBatch::try_from_iter(columns).unwrap()).unwrap(), None, "a NULL");
    }

    #[test]
    fn totals_that_do_not_fit() {
        assert_eq!(totals(&square(&[(0, 0, i64::MAX), (0, 1, 1)]), &[0, 1]), None);
    }
}
