//! Relation functions: functions in FROM whose arguments are relations, such as `critical_path(tasks, links)`.
//!
//! Life of a call: the engine resolves the arguments to plans and hands them to [`node::plan`], which checks names and
//! types against the function's [`Parameter`]s and brings each input into a fixed form (a projection: unqualified
//! columns, known types). The result is one logical node ([`node::RelationNode`]) and one physical operator
//! ([`exec::RelationExec`]) for all functions, so that filters, projections, EXPLAIN, memory limits, metrics and
//! cancelling work alike for each. The function itself is the pure part: [`RelationFunction::compute`] reads batches from
//! its [`call::Call`] and emits rows.
//!
//! A new function is one file: a unit struct, its parameters and output, its documentation, `compute`, and a line in
//! [`crate::relation_functions`].
//!
//! **Runs.** Every answer begins with the column `run`. A function computes each run by itself; only functions whose purpose is to compare
//! runs read several at once. If the first input has a column `run`, each of its runs is computed from its own rows, from the rows of that
//! run in the other inputs, and from all rows of an input without the column; if it has none, everything is one run whose `run` is NULL.
//! Since a run's answer depends on that run's rows alone, a filter on `run` is moved from the answer into the inputs. No rows in, no rows out: a
//! function must not return rows for empty inputs.

pub mod by_run;
pub mod call;
pub mod exec;
pub(crate) mod gather;
pub mod node;
pub mod notes;
pub mod parts;
pub mod rows;
pub mod runs;
pub mod stored;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_doc::Documentation;

use call::{Call, Options};

/// A function from relations to a relation.
pub trait RelationFunction: Debug + Send + Sync {
    /// The name in SQL, in lower case.
    fn name(&self) -> &'static str;

    /// What `tq functions` shows; its example is run by a test.
    fn documentation(&self) -> &Documentation;

    /// Inputs and options in the order in which they may be given without names.
    fn parameters(&self) -> &'static [Parameter];

    /// The columns of the answer, after `run` unless [`Self::across_runs`]. Those that come from optional input columns must be nullable.
    fn output(&self) -> Vec<Field>;

    /// Output columns whose values are those of an input column. They have its type, so that a dictionary stays one and
    /// rows that are passed on whole are not copied; without the input column they are as [`Self::output`] says, all NULL.
    fn handed_on(&self) -> &'static [HandedOn] {
        &[]
    }

    /// Whether runs are compared with each other: the answer then has no column `run`, and no filter is moved into the
    /// inputs.
    fn across_runs(&self) -> bool {
        false
    }

    /// The input column that tells the runs apart. A function that compares the runs of a study with each other has the
    /// study here: then that is what `run` is in its answer, and what a filter on `run` is about.
    fn runs_from(&self) -> &'static str {
        "run"
    }

    /// How a batch of an input is reduced to the rows that the function needs, or to fewer rows with the same meaning;
    /// `None`: not at all. This happens where the batch is read, on as many threads as the input has partitions. What
    /// it returns has the columns that the function reads, of the same types, in any order.
    ///
    /// # Errors
    /// Options that are invalid.
    fn part(&self, _input: &str, _options: &Options) -> Result<Option<Part>> {
        Ok(None)
    }

    /// The window of time outside of which it needs no rows, closed at both ends.
    fn window(&self) -> Option<Window> {
        None
    }

    /// In which order it takes the rows of its inputs with the least effort. It gets them in another one, too.
    fn row_order(&self) -> RowOrder {
        RowOrder::Trace
    }

    /// In which order the runs of its answer come, as long as all of its input is in memory.
    fn order_of_runs(&self) -> OrderOfRuns {
        OrderOfRuns::Names
    }

    /// Reads the inputs and emits the answer. Runs on a thread on which it may block and take its time, as long as it
    /// calls [`call::Work::check`] every ten thousand rows or so.
    fn compute(&self, call: &mut Call) -> Result<()>;

    /// The inputs alone, in their order.
    fn inputs(&self) -> Vec<&'static InputSpec> {
        self.parameters().iter().filter_map(Parameter::as_input).collect()
    }

    /// The options alone, in their order.
    fn options(&self) -> Vec<&'static OptionSpec> {
        self.parameters().iter().filter_map(Parameter::as_option).collect()
    }

    /// The syntax of a call: `critical_path([tasks], [links], [break_weak => BOOLEAN])`.
    fn signature(&self) -> String {
        let parameter = |parameter: &Parameter| match parameter {
            Parameter::Input(InputSpec { name, omitted: Omitted::Refused, .. }) => (*name).to_owned(),
            Parameter::Input(input) => format!("[{}]", input.name),
            Parameter::Option(OptionSpec { name, kind, default: Default::Refused }) => format!("{name} => {kind}"),
            Parameter::Option(option) => format!("[{} => {}]", option.name, option.kind),
        };
        let parameters: Vec<String> = self.parameters().iter().map(parameter).collect();
        format!("{}({})", self.name(), parameters.join(", "))
    }
}

/// An order of the rows of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// That of the trace.
    Trace,
    /// As they stand on disk: a store has rows of one location together.
    Any,
    /// The rows of each location of each run in the order of their starts: then [`call::Input::is_by_lane`] is true.
    Lanes,
}

/// An order of the runs of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderOfRuns {
    /// That of [`runs::Runs::in_order`].
    Names,
    /// That of the rows of the first input, which are handed on.
    Rows,
}

/// Takes a part of a batch or puts rows together, and counts rows that were left out for what is wrong with them
/// ([`call::Input::left_out`]).
pub type Part = Arc<dyn Fn(RecordBatch, &AtomicUsize) -> Result<RecordBatch> + Send + Sync>;

/// An output column with the values of an input column.
#[derive(Debug)]
pub struct HandedOn {
    /// The name in the answer.
    pub output: &'static str,
    /// The input.
    pub input: &'static str,
    /// The input's column.
    pub column: &'static str,
}

/// An argument of a relation function.
#[derive(Debug)]
pub enum Parameter {
    /// A relation.
    Input(InputSpec),
    /// One value for the whole call.
    Option(OptionSpec),
}

impl Parameter {
    /// The name that `name => …` uses.
    pub fn name(&self) -> &'static str {
        match self {
            Parameter::Input(input) => input.name,
            Parameter::Option(option) => option.name,
        }
    }

    /// The input, if it is one.
    pub fn as_input(&self) -> Option<&InputSpec> {
        match self {
            Parameter::Input(input) => Some(input),
            Parameter::Option(_) => None,
        }
    }

    /// The option, if it is one.
    pub fn as_option(&self) -> Option<&OptionSpec> {
        match self {
            Parameter::Option(option) => Some(option),
            Parameter::Input(_) => None,
        }
    }
}

/// A relation that a function reads. `run` is not among its columns: every input may have it.
#[derive(Debug)]
pub struct InputSpec {
    /// The name, as in `tasks => …`.
    pub name: &'static str,
    /// What is read when the call does not give this input.
    pub omitted: Omitted,
    /// The columns that are read; others are ignored.
    pub columns: &'static [ColumnSpec],
}

impl InputSpec {
    /// Whether the place of a row settles its ties, for want of the number of a task: then rows are read in the order of the input.
    pub fn goes_by_place(&self, input: &Schema) -> bool {
        self.columns.iter().any(|column| column.name == "task") && input.column_with_name("task").is_none()
    }
}

/// Options that bound a window, and the columns of an input that tell what lies in it: `start <= to AND finish >= from`, or a time is NULL.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The input.
    pub input: &'static str,
    /// Its columns of starts and finishes.
    pub columns: [&'static str; 2],
    /// The options `from` and `to`; NULL leaves a side open.
    pub options: [&'static str; 2],
}

/// What stands for an input that a call does not give. The function learns of it by [`call::Input::was_omitted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omitted {
    /// Leaving it out is an error.
    Refused,
    /// The table of this name.
    Table(&'static str),
}

/// A column of an input.
#[derive(Debug)]
pub struct ColumnSpec {
    /// The name.
    pub name: &'static str,
    /// The accepted types, and the types in which the function sees them.
    pub kind: ColumnKind,
    /// Whether a call without it is an error.
    pub needed: bool,
    /// The output columns for which this column is read; when a query uses none of them, it is not read. Empty: it is
    /// always read.
    pub only_for: &'static [&'static str],
}

impl ColumnSpec {
    /// A column without which there is no answer.
    pub const fn needed(name: &'static str, kind: ColumnKind) -> Self {
        ColumnSpec { name, kind, needed: true, only_for: &[] }
    }

    /// A column that may be missing.
    pub const fn optional(name: &'static str, kind: ColumnKind) -> Self {
        ColumnSpec { name, kind, needed: false, only_for: &[] }
    }

    /// The same, read only when the query asks for one of these output columns. Such a column must be optional.
    pub const fn only_for(mut self, outputs: &'static [&'static str]) -> Self {
        self.only_for = outputs;
        self
    }
}

/// The type of an input column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Any integer; comes as `Int64`.
    Integer,
    /// Any number; comes as `Float64`.
    Double,
    /// Any number; whole ones come as `Int64`, others as `Float64`.
    Number,
    /// Any text; comes as it is: `Utf8`, `LargeUtf8`, `Utf8View` or a dictionary of one of them.
    Text,
    /// Anything; comes as it is.
    Any,
}

impl ColumnKind {
    /// The type in which a column of type `given` comes; `None`: it is not taken.
    pub fn normalised(self, given: &DataType) -> Option<DataType> {
        let null = given == &DataType::Null;
        match self {
            ColumnKind::Integer => (given.is_integer() || null).then_some(DataType::Int64),
            ColumnKind::Double => (given.is_numeric() || null).then_some(DataType::Float64),
            ColumnKind::Number if given.is_integer() || null => Some(DataType::Int64),
            ColumnKind::Number => given.is_numeric().then_some(DataType::Float64),
            ColumnKind::Text if null => Some(DataType::Utf8View),
            ColumnKind::Text => is_text(given).then(|| given.clone()),
            ColumnKind::Any => Some(given.clone()),
        }
    }

    /// The kind as SQL calls it.
    pub const fn sql_name(self) -> &'static str {
        match self {
            ColumnKind::Integer => "BIGINT",
            ColumnKind::Double => "DOUBLE",
            ColumnKind::Number => "a number",
            ColumnKind::Text => "VARCHAR",
            ColumnKind::Any => "any type",
        }
    }
}

/// Whether a type is text, plain or as a dictionary.
pub fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// One value that a function takes: a constant, or the answer of a scalar subquery.
#[derive(Debug)]
pub struct OptionSpec {
    /// The name, as in `bins => 100`.
    pub name: &'static str,
    /// Its type.
    pub kind: OptionKind,
    /// Its value when the call does not give it.
    pub default: Default,
}

/// The type of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// Text.
    Text,
}

impl OptionKind {
    /// The Arrow type in which the value comes.
    pub const fn data_type(self) -> DataType {
        match self {
            OptionKind::Boolean => DataType::Boolean,
            OptionKind::Integer => DataType::Int64,
            OptionKind::Double => DataType::Float64,
            OptionKind::Text => DataType::Utf8,
        }
    }
}

impl std::fmt::Display for OptionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OptionKind::Boolean => "BOOLEAN",
            OptionKind::Integer => "BIGINT",
            OptionKind::Double => "DOUBLE",
            OptionKind::Text => "VARCHAR",
        })
    }
}

/// The value of an option that a call does not give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// Leaving it out is an error.
    Refused,
    /// NULL: the function decides.
    Null,
    /// This truth value.
    Boolean(bool),
    /// This whole number.
    Integer(i64),
    /// This number.
    Double(f64),
    /// This text.
    Text(&'static str),
    /// How many ticks a second has in the session: `s(1)`, which the planner puts in.
    Second,
}

impl OptionSpec {
    /// The default as a value of the option's type; `None` when the option must be given, or when only a session knows it.
    pub fn default_value(&self) -> Option<ScalarValue> {
        match self.default {
            Default::Refused | Default::Second => None,
            Default::Null => ScalarValue::try_new_null(&self.kind.data_type()).ok(),
            Default::Boolean(value) => Some(ScalarValue::Boolean(Some(value))),
            Default::Integer(value) => Some(ScalarValue::Int64(Some(value))),
            Default::Double(value) => Some(ScalarValue::Float64(Some(value))),
            Default::Text(value) => Some(ScalarValue::Utf8(Some(value.to_owned()))),
        }
    }
}
