//! The model of all shapes: regions, problem sizes, and one execution per size, number of cores and repetition.
//!
//! ```text
//! region      '' ├ 1 ├ 1.1              by declared hierarchy or by line ranges
//! size        n=1000, n=2000            in their order, as text
//! execution   (size, cores, setting, repetition) → spans of regions
//! ```
//! A *setting* is what else was varied: a clock frequency. Executions of different settings are different studies.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use crate::trace::{Stats, findings};

/// A region of the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Region {
    /// `''` for the whole program.
    pub(super) name: String,
    /// The format's own name of it, where that is another.
    pub(super) id: Option<String>,
    /// The place in the study of the region around it.
    pub(super) parent: Option<usize>,
    /// First and last line.
    pub(super) lines: Option<(i64, i64)>,
    pub(super) file: Option<String>,
}

/// What was varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Configuration {
    /// The place of the setting in the study.
    pub(super) setting: usize,
    /// The place of the problem size in the study; `None` where the program takes none.
    pub(super) size: Option<usize>,
    pub(super) cores: i64,
    /// From 0.
    pub(super) repetition: i64,
}

/// A stretch in which a region ran, in units of [`super::decimal`] since the start of the execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) region: usize,
    pub(super) start: i128,
    pub(super) finish: i128,
}

/// A value of an execution.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) name: String,
    /// Since the start of the execution; `None` for a total.
    pub(super) time: Option<i128>,
    pub(super) value: f64,
    pub(super) unit: Option<&'static str>,
    pub(super) region: Option<usize>,
}

/// One execution of the program.
#[derive(Debug, Default)]
pub(super) struct Execution {
    pub(super) spans: Vec<Span>,
    /// Regions of which only an efficiency is known.
    pub(super) without_time: Vec<usize>,
    pub(super) values: Vec<Value>,
    /// Units since 1970 at its start.
    pub(super) started: Option<i128>,
    /// Records that it was made of and that are no rows of their own, counted by finding.
    pub(super) stats: Stats,
}

/// Everything of one trace.
#[derive(Default)]
pub(super) struct Study {
    pub(super) program: Option<String>,
    pub(super) regions: Vec<Region>,
    /// Problem sizes as written.
    pub(super) sizes: Vec<String>,
    /// The sizes in an order that the command line gave.
    pub(super) order_given: Vec<String>,
    /// What else was varied: ` f=2300000`, and its members for `runs.args`.
    pub(super) settings: Vec<Setting>,
    pub(super) configurations: Vec<Configuration>,
    pub(super) executions: Vec<Execution>,
    /// The same for every execution.
    pub(super) args: serde_json::Map<String, serde_json::Value>,
    pub(super) stats: Stats,
    places: HashMap<Configuration, usize>,
    size_places: HashMap<String, usize>,
    setting_places: HashMap<Setting, usize>,
}

/// Values of the keys that are neither size, cores nor repetition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Setting {
    pub(super) members: Vec<(String, String)>,
}

impl Setting {
    /// `f=2300000`; empty where nothing else was varied.
    pub(super) fn text(&self) -> String {
        let short = |name: &str| if name == "frequency" { "f".to_owned() } else { name.to_owned() };
        self.members.iter().map(|(name, value)| format!("{}={value}", short(name))).collect::<Vec<_>>().join(" ")
    }
}

/// About how many bytes the tables of an execution take before they move into the batches that all runs share.
pub(super) const EXECUTION_MEMORY: usize = 4 << 10;

impl Study {
    /// About how many bytes are held, [`EXECUTION_MEMORY`] of each execution included.
    pub(super) fn memory(&self) -> usize {
        let of = |execution: &Execution| {
            EXECUTION_MEMORY
                + execution.spans.capacity() * size_of::<Span>()
                + execution.without_time.capacity() * size_of::<usize>()
                + execution.values.capacity() * (size_of::<Value>() + 32)
        };
        self.executions.iter().map(of).sum::<usize>()
            + self.regions.capacity() * (size_of::<Region>() + 64)
            + self.sizes.capacity() * 64
    }

    /// The place of a problem size.
    pub(super) fn size(&mut self, argument: &str) -> usize {
        if let Some(place) = self.size_places.get(argument) {
            return *place;
        }
        self.sizes.push(argument.to_owned());
        self.size_places.insert(argument.to_owned(), self.sizes.len() - 1);
        self.sizes.len() - 1
    }

    /// The place of a setting.
    pub(super) fn setting(&mut self, setting: Setting) -> usize {
        let next = self.settings.len();
        let place = *self.setting_places.entry(setting.clone()).or_insert(next);
        if place == next {
            self.settings.push(setting);
        }
        place
    }

    /// The execution of a configuration.
    pub(super) fn execution(&mut self, configuration: Configuration) -> &mut Execution {
        let next = self.executions.len();
        let place = *self.places.entry(configuration).or_insert(next);
        if place == next {
            self.configurations.push(configuration);
            self.executions.push(Execution::default());
        }
        &mut self.executions[place]
    }

    /// One more than the largest repetition so far: where those of a further document begin.
    pub(super) fn next_repetition(&self) -> i64 {
        self.configurations.iter().map(|known| known.repetition + 1).max().unwrap_or(0)
    }

    /// The rank of each size, from 0: in the order in which they were met; `sorted` by number when all are numbers, else as
    /// the command line has them.
    pub(super) fn size_ranks(&self, sorted: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.sizes.len()).collect();
        let numbers: Option<Vec<f64>> = self.sizes.iter().map(|size| numeric(size)).collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, given) in self.order_given.iter().enumerate() {
            places.entry(given.as_str()).or_insert(place);
        }
        let given = |size: &usize| places.get(self.sizes[*size].as_str()).copied();
        match numbers {
            Some(numbers) if sorted => order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b])),
            None if sorted && order.iter().all(|size| given(size).is_some()) => order.sort_by_key(given),
            _ => {}
        }
        let mut ranks = vec![0; order.len()];
        for (rank, size) in order.into_iter().enumerate() {
            ranks[size] = rank;
        }
        ranks
    }

    /// Gives names to regions of which two have the same, so that their times are not added up.
    pub(super) fn tell_regions_apart(&mut self) {
        let mut taken = HashSet::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for region in &mut self.regions {
            let mut name = region.name.clone();
            let mut number = *numbers.get(&name).unwrap_or(&2);
            while !taken.insert(name.clone()) {
                name = format!("{} ({number})", region.name).trim_start().to_owned();
                number += 1;
            }
            numbers.insert(std::mem::replace(&mut region.name, name), number);
        }
    }

    /// Counts the cells of size and cores that a region lacks: what the Viewer crashes on, or shifts columns by.
    pub(super) fn count_missing(&mut self) {
        let mut present: HashSet<(usize, usize, Option<usize>, i64)> = HashSet::new();
        let mut regions: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut cores: BTreeSet<(usize, i64)> = BTreeSet::new();
        let mut sizes: BTreeSet<(usize, Option<usize>)> = BTreeSet::new();
        for (configuration, execution) in self.configurations.iter().zip(&self.executions) {
            let spans = execution.spans.iter().map(|span| span.region);
            for region in spans.chain(execution.without_time.iter().copied()) {
                // Repetitions bring nothing new.
                if present.insert((region, configuration.setting, configuration.size, configuration.cores)) {
                    regions.insert((region, configuration.setting));
                    cores.insert((configuration.setting, configuration.cores));
                    sizes.insert((configuration.setting, configuration.size));
                }
            }
        }
        let mut held: HashMap<(usize, usize), usize> = HashMap::new();
        for (region, setting, ..) in &present {
            *held.entry((*region, *setting)).or_default() += 1;
        }
        let (mut missing, mut example) = (0, None);
        for &(region, setting) in &regions {
            let of_cores = cores.range((setting, i64::MIN)..=(setting, i64::MAX));
            let of_sizes = sizes.range((setting, None)..(setting + 1, None));
            let lacking = of_cores.clone().count() * of_sizes.clone().count() - held[&(region, setting)];
            missing += lacking as u64;
            if lacking > 0 && example.is_none() {
                let is_present = |size, cores| present.contains(&(region, setting, size, cores));
                let cells = of_cores.flat_map(|&(_, cores)| of_sizes.clone().map(move |&(_, size)| (size, cores)));
                let lacks = cells.into_iter().find(|&(size, cores)| !is_present(size, cores));
                example = lacks.map(|(size, cores)| (region, size, cores));
            }
        }
        let (names, sizes) = (&self.regions, &self.sizes);
        self.stats.note(findings::MISSING_CONFIGURATION, missing, || {
            let (region, size, cores) = example.unwrap_or_default();
            let size = size.map_or_else(String::new, |size| format!(" of size `{}`", sizes[size]));
            let region = match names[region].name.as_str() {
                "" => "the whole program".to_owned(),
                name => format!("region `{name}`"),
            };
            format!("{region} has no execution{size} on {cores} cores")
        });
    }
}

/// A problem size that is a number.
pub(super) fn numeric(size: &str) -> Option<f64> {
    size.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Gives a further repetition to a region that was measured twice under one number.
pub(super) struct Repetitions {
    taken: HashSet<Configuration>,
    /// How many numbers the file itself uses.
    next: i64,
}

impl Repetitions {
    /// `expected`: about how many configurations there are.
    pub(super) fn new(next: i64, expected: usize) -> Repetitions {
        Repetitions { taken: HashSet::with_capacity(expected), next }
    }

    /// The configuration, with another repetition when it was there before.
    pub(super) fn place(&mut self, mut configuration: Configuration, stats: &mut Stats) -> Configuration {
        if self.taken.insert(configuration) {
            return configuration;
        }
        let own = configuration.repetition;
        configuration.repetition = self.next;
        while !self.taken.insert(configuration) {
            configuration.repetition += 1;
        }
        stats.note(findings::REPEATED_CONFIGURATION, 1, || {
            format!("{} cores twice in repetition {own}; one becomes {}", configuration.cores, configuration.repetition)
        });
        configuration
    }
}
