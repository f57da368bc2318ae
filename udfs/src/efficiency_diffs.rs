//! `efficiency_diffs(executions, method)`: how the efficiency of a program changes with problem size and number of cores.
//!
//! Life of the data: executions are collected per study and sorted by region, size, cores and repetition, so that the
//! repetitions of one cell are adjacent; each region gets a grid of the sizes and core counts of its study; differences
//! are taken between neighbouring cells.
//!
//! ```text
//!            1     2     4 cores
//! size 1     E ─── E ─── E        diff_cores: →      the larger configuration minus the smaller one,
//!            │  ╲  │  ╲  │        diff_size:  ↓      and it stands at the larger one
//! size 2     E ─── E ─── E        diff_both:  ↘
//! ```

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::{Lanes, Nulls};
use crate::relation::call::{Call, column};
use crate::relation::rows::{Role, Rows};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, HandedOn, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction,
};
use crate::ticks::time_field;

/// The relation function `efficiency_diffs`.
#[derive(Debug)]
pub struct EfficiencyDiffs;

static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "executions",
        omitted: Omitted::Table("executions"),
        columns: &[
            ColumnSpec::needed("cores", ColumnKind::Integer),
            ColumnSpec::needed("time", ColumnKind::Number),
            ColumnSpec::optional("region", ColumnKind::Text),
            ColumnSpec::optional("argument", ColumnKind::Text),
            ColumnSpec::optional("size_order", ColumnKind::Integer),
            ColumnSpec::optional("repetition", ColumnKind::Integer),
        ],
    }),
    Parameter::Option(OptionSpec {
        name: "method",
        kind: OptionKind::Text,
        default: Default::Text("ratio_of_medians"),
    }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How efficiently a program uses cores, and how that changes when the problem grows, when cores are added, and when both \
         happen: the figures of a scalability study, per region.\n\n\
         Rows: per study and region one for each problem size and number of cores that occurs in the study; without an execution \
         its figures are NULL. The base is the fewest cores that ran the region and size, `efficiency` = base cores × time on \
         them ÷ (cores × time). `ratio_of_medians` takes the median of the times of all repetitions first; \
         `median_of_ratios` divides within each repetition and takes the median of the efficiencies (PaScal Viewer); a repetition \
         without the base has none. The median of an even number is the mean of the middle two; `time` shows it in whole \
         ticks, efficiencies are of the exact one. `diff_size` is efficiency - that \
         of the next smaller size on as many cores, `diff_cores` - that of the next fewer cores for the same size, `diff_both` - \
         that of both smaller. So a program is scalable where `diff_size` >= 0, strongly where `diff_cores` >= 0, weakly where \
         `diff_both` >= 0. Sizes are in the order of `size_order`; without it of `argument`, as numbers where all are.\n\n\
         Units: `time` is the median, as `executions` has it; efficiencies and differences are ratios. `run` is the column \
         `study` of the executions, which are compared within one study only; without that column all are one.\n\n\
         Nulls: an execution without a time or cores above 0 is left out and counted in a note. NULL is a region and a size of \
         its own, and a NULL repetition is one of its own. Differences to a cell without executions are NULL.\n\n\
         Ties: none; several times of one repetition count as their median.\n\n\
         Errors: another `method`, more than 16777216 cells.\n\n\
         Cost: O(n log n); 56 bytes an execution.\n\n\
         Source: PaScal Viewer (da Silva and others, 2019), formulas 1 to 3.",
        "efficiency_diffs([executions], [method => VARCHAR])",
    )
    .with_sql_example(
        "SELECT argument, cores, time, round(efficiency, 3) AS efficiency, round(diff_size, 3) AS diff_size,\n  \
         round(diff_cores, 3) AS diff_cores, round(diff_both, 3) AS diff_both\nFROM efficiency_diffs(\n  \
         (SELECT * FROM (VALUES ('10', 1, 100), ('10', 2, 60), ('20', 1, 400), ('20', 2, 210)) AS runs(argument, cores, time)))\n\
         ORDER BY argument, cores",
    )
    .with_argument(
        "executions",
        "Relation: cores (BIGINT), time (BIGINT or DOUBLE); optional study, region, argument, size_order, repetition.",
    )
    .with_argument("method", "'ratio_of_medians' (default) or 'median_of_ratios'.")
    .build()
});

/// How repetitions become one efficiency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    RatioOfMedians,
    MedianOfRatios,
}

/// A grid has no more cells than this.
const CELLS_MAX: usize = 1 << 24;

impl RelationFunction for EfficiencyDiffs {
    fn name(&self) -> &'static str {
        "efficiency_diffs"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("region", DataType::Utf8View, true),
            Field::new("argument", DataType::Utf8View, true),
            Field::new("size_order", DataType::Int64, false),
            Field::new("cores", DataType::Int64, false),
            time_field("time", true),
            Field::new("efficiency", DataType::Float64, true),
            Field::new("diff_size", DataType::Float64, true),
            Field::new("diff_cores", DataType::Float64, true),
            Field::new("diff_both", DataType::Float64, true),
        ]
    }

    fn handed_on(&self) -> &'static [HandedOn] {
        &[HandedOn { output: "time", input: "executions", column: "time" }]
    }

    fn runs_from(&self) -> &'static str {
        "study"
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let method = match call.options.text("method")? {
            None | Some("ratio_of_medians") => Method::RatioOfMedians,
            Some("median_of_ratios") => Method::MedianOfRatios,
            Some(other) => {
                return plan_err!(
                    "efficiency_diffs: `method` is '{other}'; 'ratio_of_medians' and 'median_of_ratios' are possible"
                );
            }
        };
        let mut runs = Runs::new();
        let executions = Rows::read(call, "executions", Role::First, &["cores", "time"], &mut runs)?;
        let (mut regions, mut arguments) = (Lanes::new(), Lanes::new());
        let region_of = regions.number(&executions, Some("region"), Nulls::OneLane, &mut call.work)?;
        let argument_of = arguments.number(&executions, Some("argument"), Nulls::OneLane, &mut call.work)?;
        call.work.grow(executions.len() * size_of::<Sample>())?;
        let (mut studies, unusable) = collect(&executions, runs.len(), &region_of, &argument_of, &arguments)?;
        call.work.note_count(
            unusable + executions.left_out,
            "execution without a time or cores above 0 was left out",
            "executions without a time or cores above 0 were left out",
        );
        for run in runs.in_order() {
            call.work.check()?;
            emit(call, &runs, run, &mut studies[run], method, &regions, &arguments)?;
        }
        Ok(())
    }
}

/// An execution of a region.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    /// The lane of its region.
    region: u32,
    /// The place of its size in the study.
    size: u32,
    cores: i64,
    repetition: Option<i64>,
    /// The time, and whole ticks where it is that.
    time: f64,
    ticks: i64,
}

/// A problem size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size {
    /// The lane of its argument.
    argument: u32,
    order: Option<i64>,
}

/// The executions of a study.
#[derive(Debug, std::default::Default)]
struct Study {
    samples: Vec<Sample>,
    sizes: Vec<Size>,
    /// Places of sizes by argument, those without one by their order.
    places: HashMap<(u32, Option<i64>), u32>,
}

/// What is known of a region, size and number of cores.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    time: f64,
    ticks: i64,
    efficiency: Option<f64>,
}

/// The executions by study, and how many have no time or cores above 0.
fn collect(
    executions: &Rows,
    runs: usize,
    region_of: &[u32],
    argument_of: &[u32],
    arguments: &Lanes,
) -> Result<(Vec<Study>, usize)> {
    let mut studies: Vec<Study> = (0..runs).map(|_| Study::default()).collect();
    let mut unusable = 0;
    for batch in executions.batches() {
        let integers = |name: &str| batch.batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>());
        let (cores, orders, repetitions) = (integers("cores"), integers("size_order"), integers("repetition"));
        let value = |column: Option<&Int64Array>, row: usize| {
            column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
        };
        let times = column(&batch.batch, "time")?;
        let whole = times.as_primitive_opt::<Int64Type>();
        let doubles = times.as_primitive_opt::<Float64Type>();
        for stretch in &batch.stretches {
            let Some(study) = stretch.run.map(|run| &mut studies[run]) else { continue };
            for row in stretch.rows.clone() {
                let ticks = whole.map_or(0, |times| times.value(row));
                let time = doubles.map_or(ticks as f64, |times| times.value(row));
                let cores = value(cores, row).unwrap_or(0);
                if !(time > 0.0 && time.is_finite() && cores > 0) {
                    unusable += 1;
                    continue;
                }
                let (argument, order) = (argument_of[batch.first + row], value(orders, row));
                let size = study.size(argument, order, arguments);
                let region = region_of[batch.first + row];
                study.samples.push(Sample { region, size, cores, repetition: value(repetitions, row), time, ticks });
            }
        }
    }
    Ok((studies, unusable))
}

impl Study {
    fn size(&mut self, argument: u32, order: Option<i64>, arguments: &Lanes) -> u32 {
        let without_text = arguments.lane(argument as usize).word == NONE;
        let next = self.sizes.len() as u32;
        let place = *self.places.entry((argument, order.filter(|_| without_text))).or_insert(next);
        if place == next {
            self.sizes.push(Size { argument, order });
        }
        let known = &mut self.sizes[place as usize];
        known.order = match (known.order, order) {
            (Some(known), Some(order)) => Some(known.min(order)),
            (known, order) => known.or(order),
        };
        place
    }

    /// The places of sizes in their order: as given, else by number, else by text.
    fn sizes_in_order(&self, texts: &StringViewArray) -> Vec<u32> {
        let text = |size: &Size| -> &str {
            let argument = size.argument as usize;
            if texts.is_valid(argument) { texts.value(argument) } else { "" }
        };
        let all_given = self.sizes.iter().all(|size| size.order.is_some());
        let numbers: Vec<Option<f64>> = self.sizes.iter().map(|size| text(size).trim().parse().ok()).collect();
        let all_numbers = !all_given && numbers.iter().all(Option::is_some);
        let mut places: Vec<u32> = (0..self.sizes.len() as u32).collect();
        places.sort_by(|&one, &other| {
            let (one, other) = (one as usize, other as usize);
            if all_numbers {
                return numbers[one].unwrap_or(0.0).total_cmp(&numbers[other].unwrap_or(0.0));
            }
            // Those without an order come last.
            let key = |size: usize| (self.sizes[size].order.is_none(), self.sizes[size].order, text(&self.sizes[size]));
            key(one).cmp(&key(other))
        });
        places
    }
}

/// The efficiencies of one region and size; `samples` in the order of cores and repetitions.
fn efficiencies(samples: &[Sample], method: Method) -> Vec<(i64, Cell)> {
    let by_cores = || samples.chunk_by(|one, other| one.cores == other.cores);
    let Some(base) = by_cores().next() else { return vec![] };
    let times = |samples: &[Sample]| -> Vec<f64> { samples.iter().map(|sample| sample.time).collect() };
    // Of each repetition that has the base: its time there.
    let base_of: Vec<(Option<i64>, f64)> = base
        .chunk_by(|one, other| one.repetition == other.repetition)
        .map(|of| (of[0].repetition, median(times(of))))
        .collect();
    let base_time = median(times(base));
    by_cores()
        .map(|of_cores| {
            let cores = of_cores[0].cores;
            let factor = base[0].cores as f64 / cores as f64;
            let time = median(times(of_cores));
            let efficiency = match method {
                Method::RatioOfMedians => Some(factor * base_time / time),
                Method::MedianOfRatios => {
                    let ratio = |of: &[Sample]| {
                        let place =
                            base_of.binary_search_by_key(&of[0].repetition, |(repetition, _)| *repetition).ok()?;
                        Some(factor * base_of[place].1 / median(times(of)))
                    };
                    let of_repetitions = of_cores.chunk_by(|one, other| one.repetition == other.repetition);
                    let ratios: Vec<f64> = of_repetitions.filter_map(ratio).collect();
                    (!ratios.is_empty()).then(|| median(ratios))
                }
            };
            let ticks = median_ticks(of_cores.iter().map(|sample| sample.ticks).collect());
            (cores, Cell { time, ticks, efficiency })
        })
        .collect()
}

/// The median of at least one number; of an even number the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    if values.len() % 2 == 1 { low } else { low / 2.0 + high / 2.0 }
}

/// The same of whole ticks, half a tick rounded to the even one.
fn median_ticks(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    let sum = i128::from(values[(values.len() - 1) / 2]) + i128::from(values[values.len() / 2]);
    let half = sum.div_euclid(2);
    // The mean of two BIGINTs is one.
    (half + if sum.rem_euclid(2) == 1 { half & 1 } else { 0 }) as i64
}

/// The grid of a region: cells by size, then cores.
struct Grid {
    cells: Vec<Option<Cell>>,
    cores: usize,
}

impl Grid {
    fn efficiency(&self, size: usize, cores: usize) -> Option<f64> {
        self.cells[size * self.cores + cores]?.efficiency
    }

    /// The efficiency minus that `sizes` sizes and `cores` core counts before.
    fn difference(&self, cell: usize, sizes: usize, cores: usize) -> Option<f64> {
        let (size, core) = (cell / self.cores, cell % self.cores);
        let before = self.efficiency(size.checked_sub(sizes)?, core.checked_sub(cores)?)?;
        Some(self.efficiency(size, core)? - before)
    }
}

fn emit(
    call: &mut Call,
    runs: &Runs,
    run: usize,
    study: &mut Study,
    method: Method,
    regions: &Lanes,
    arguments: &Lanes,
) -> Result<()> {
    let region_texts = regions.texts(0..regions.len())?;
    let argument_texts = arguments.texts(0..arguments.len())?;
    let sizes = study.sizes_in_order(argument_texts.as_string_view());
    let mut rank = vec![0u32; sizes.len()];
    for (place, &size) in (0..).zip(&sizes) {
        rank[size as usize] = place;
    }
    let mut cores: Vec<i64> = study.samples.iter().map(|sample| sample.cores).collect();
    cores.sort_unstable();
    cores.dedup();
    let names = region_texts.as_string_view();
    let name = |lane: u32| names.is_valid(lane as usize).then(|| names.value(lane as usize));
    // Equal names are one lane, so the lane need not be compared.
    study.samples.sort_unstable_by(|one, other| {
        let key = |sample: &Sample| (rank[sample.size as usize], sample.cores, sample.repetition);
        let of_region = |sample: &Sample| (one.region != other.region).then(|| name(sample.region));
        of_region(one).cmp(&of_region(other)).then_with(|| key(one).cmp(&key(other)))
    });
    let cells = sizes.len().saturating_mul(cores.len());
    let of_regions: Vec<&[Sample]> = study.samples.chunk_by(|one, other| one.region == other.region).collect();
    if cells.saturating_mul(of_regions.len()) > CELLS_MAX {
        return exec_err!(
            "efficiency_diffs: {} regions, {} sizes and {} numbers of cores are more than {CELLS_MAX} cells",
            of_regions.len(),
            sizes.len(),
            cores.len()
        );
    }
    let time_type = call.output().field_with_name("time")?.data_type().clone();
    for of_region in of_regions {
        let mut grid = Grid { cells: vec![None; cells], cores: cores.len() };
        for of_size in of_region.chunk_by(|one, other| one.size == other.size) {
            let row = rank[of_size[0].size as usize] as usize * cores.len();
            for (count, cell) in efficiencies(of_size, method) {
                if let Ok(place) = cores.binary_search(&count) {
                    grid.cells[row + place] = Some(cell);
                }
            }
        }
        let size_at = |cell: usize| &study.sizes[sizes[cell / cores.len()] as usize];
        let picked = UInt32Array::from_iter_values((0..cells).map(|cell| size_at(cell).argument));
        let doubles = |value: &dyn Fn(usize) -> Option<f64>| -> ArrayRef {
            Arc::new((0..cells).map(value).collect::<Float64Array>())
        };
        let time: ArrayRef = match time_type {
            DataType::Float64 => doubles(&|cell| grid.cells[cell].map(|cell| cell.time)),
            _ => Arc::new(grid.cells.iter().map(|cell| cell.map(|cell| cell.ticks)).collect::<Int64Array>()),
        };
        let order = |cell: usize| size_at(cell).order.unwrap_or((cell / cores.len()) as i64);
        let columns: Vec<ArrayRef> = vec![
            runs.column(&[(run, cells)], call.output().field(0).data_type())?,
            take(&region_texts, &UInt32Array::from_value(of_region[0].region, cells), None)?,
            take(&argument_texts, &picked, None)?,
            Arc::new(Int64Array::from_iter_values((0..cells).map(order))),
            Arc::new(Int64Array::from_iter_values((0..cells).map(|cell| cores[cell % cores.len()]))),
            time,
            doubles(&|cell| grid.cells[cell].and_then(|cell| cell.efficiency)),
            doubles(&|cell| grid.difference(cell, 1, 0)),
            doubles(&|cell| grid.difference(cell, 0, 1)),
            doubles(&|cell| grid.difference(cell, 1, 1)),
        ];
        call.emit(columns)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn sample(cores: i64, repetition: i64, time: f64) -> Sample {
        Sample { region: 0, size: 0, cores, repetition: Some(repetition), time, ticks: time as i64 }
    }

    #[test]
    fn the_two_definitions_differ() {
        // Size 4 of PaScal's three repetitions, times on 1 and 4 cores: (1, 4), (3, 1), (8, 9).
        let samples: Vec<Sample> = [(1, 0, 1.0), (1, 1, 3.0), (1, 2, 8.0), (4, 0, 4.0), (4, 1, 1.0), (4, 2, 9.0)]
            .map(|(cores, repetition, time)| sample(cores, repetition, time))
            .to_vec();
        let of = |method| efficiencies(&samples, method)[1].1.efficiency.unwrap();
        assert!((of(Method::RatioOfMedians) - 3.0 / 16.0).abs() < 1e-12);
        assert!((of(Method::MedianOfRatios) - 8.0 / 36.0).abs() < 1e-12);
    }

    #[test]
    fn a_repetition_without_the_base_has_no_ratio() {
        let samples = [sample(2, 0, 8.0), sample(4, 0, 5.0), sample(4, 1, 1.0)];
        let four = efficiencies(&samples, Method::MedianOfRatios)[1].1;
        assert_eq!((four.efficiency, four.time), (Some(0.8), 3.0));
        let only = [sample(2, 0, 8.0), sample(4, 1, 5.0)];
        assert_eq!(efficiencies(&only, Method::MedianOfRatios)[1].1.efficiency, None);
    }

    #[test]
    fn medians_of_ticks_round_to_even() {
        assert_eq!(median_ticks(vec![1, 2]), 2);
        assert_eq!(median_ticks(vec![4, 5]), 4);
        assert_eq!(median_ticks(vec![i64::MAX, i64::MAX]), i64::MAX);
        assert_eq!(median_ticks(vec![9, 1, 5]), 5);
    }

    /// Straight from the definitions, with a table of all times.
    fn naive(times: &[Vec<Vec<i64>>], cores: &[i64]) -> Vec<(f64, f64)> {
        let middle = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
        };
        let mut answers = vec![];
        for of_size in times {
            for (place, of_cores) in of_size.iter().enumerate() {
                let floats = |values: &[i64]| values.iter().map(|value| *value as f64).collect::<Vec<_>>();
                let factor = cores[0] as f64 / cores[place] as f64;
                let medians = factor * middle(&floats(&of_size[0])) / middle(&floats(of_cores));
                let ratios: Vec<f64> =
                    of_size[0].iter().zip(of_cores).map(|(base, time)| factor * *base as f64 / *time as f64).collect();
                answers.push((medians, middle(&ratios)));
            }
        }
        answers
    }

    proptest! {
        #[test]
        fn efficiencies_are_those_of_the_definitions(times in vec(vec(vec(1..1000i64, 3), 4), 1..4)) {
            let cores = [2, 3, 4, 8];
            let expected = naive(&times, &cores);
            let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
            for (size, of_size) in times.iter().enumerate() {
                let mut samples = vec![];
                for (place, of_cores) in of_size.iter().enumerate() {
                    for (repetition, time) in (0..).zip(of_cores) {
                        samples.push(sample(cores[place], repetition, *time as f64));
                    }
                }
                let medians = efficiencies(&samples, Method::RatioOfMedians);
                let ratios = efficiencies(&samples, Method::MedianOfRatios);
                for place in 0..cores.len() {
                    let (of_medians, of_ratios) = expected[size * cores.len() + place];
                    prop_assert!(close(medians[place].1.efficiency.unwrap(), of_medians));
                    prop_assert!(close(ratios[place].1.efficiency.unwrap(), of_ratios));
                }
            }
        }
    }
}
