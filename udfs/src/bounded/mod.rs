//! Size limits for functions that make large values from small ones: `repeat('x', 1000000000)` is an error, not 1 GB.
//!
//! [`Bounds::wrap`] wraps a DataFusion function in a `Bounded` one with the same name, types and results. Before the
//! function runs, `sizes` computes from the arguments an upper bound on the bytes of each row, and a row of more than
//! [`Bounds::max_value`] is an error. A batch whose rows may be large in total is computed in slices, and the bytes of
//! each slice are reserved in the memory pool first, so that nothing is built that the pool would refuse; they stay reserved
//! as long as somebody has the answer (`held`). This also holds while a query is planned: the optimiser computes `repeat('x', 1000000000)` before any operator has asked a pool for
//! anything.
//!
//! Functions whose result is at most a small multiple of their arguments (`upper`, `translate`) are checked afterwards.

mod concat;
mod held;
mod sizes;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

pub use concat::ConcatOperator;
use held::held;
use sizes::{Growth, value_bytes};

/// Bytes of a value unless something else is asked for (`--max-value`).
pub const MAX_VALUE: usize = 64_000_000;

/// Rows that come to no more than this together are computed at once and not asked of the pool.
const SMALL: u64 = 4 << 20;

/// The size limit for texts and lists that scalar functions make, for all queries of a session.
#[derive(Debug)]
pub struct Bounds {
    max_value: AtomicUsize,
    pool: Arc<dyn MemoryPool>,
}

impl Bounds {
    /// At most `max_value` bytes per value, and per batch what `pool` grants.
    pub fn new(max_value: usize, pool: Arc<dyn MemoryPool>) -> Bounds {
        Bounds { max_value: AtomicUsize::new(max_value), pool }
    }

    /// Bytes that a value may have.
    pub fn max_value(&self) -> usize {
        self.max_value.load(Ordering::Relaxed)
    }

    /// From now on a value may have so many bytes.
    pub fn set_max_value(&self, bytes: usize) {
        self.max_value.store(bytes, Ordering::Relaxed);
    }

    /// The function with these limits; `None` for one that makes nothing large, or is limited already.
    pub fn wrap(self: &Arc<Self>, function: &Arc<ScalarUDF>) -> Option<ScalarUDF> {
        if function.inner().is::<Bounded>() {
            return None;
        }
        let growth = Growth::of(function.name())?;
        Some(ScalarUDF::from(Bounded { function: Arc::clone(function), growth, bounds: Arc::clone(self) }))
    }

    /// An error for a value that is too large.
    fn check(&self, bytes: u64, function: &str) -> Result<()> {
        let most = self.max_value();
        if bytes <= most as u64 {
            return Ok(());
        }
        Err(DataFusionError::ResourcesExhausted(format!(
            "`{function}` would make a value of {}, and --max-value allows {}",
            in_words(bytes),
            in_words(most as u64)
        )))
    }
}

fn in_words(bytes: u64) -> String {
    match bytes {
        u64::MAX => "more bytes than can be counted".to_owned(),
        10_000_000.. => format!("{} MB", bytes / 1_000_000),
        10_000.. => format!("{} kB", bytes / 1_000),
        _ => format!("{bytes} bytes"),
    }
}

/// A function of DataFusion within [`Bounds`].
#[derive(Debug)]
struct Bounded {
    function: Arc<ScalarUDF>,
    growth: Growth,
    bounds: Arc<Bounds>,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl Bounded {
    /// Computes the rows in slices, and reserves each in the pool before it is computed.
    fn in_slices(&self, args: &ScalarFunctionArgs, sizes: &[u64]) -> Result<ColumnarValue> {
        let name = self.function.name();
        let memory = self.memory();
        let narrow = has_narrow_offsets(args.return_field.data_type());
        let mut made: Vec<ArrayRef> = Vec::new();
        let (mut from, mut made_bytes) = (0, 0_u64);
        while from < sizes.len() {
            let (mut to, mut bytes) = (from, 0_u64);
            while to < sizes.len() && (to == from || bytes.saturating_add(sizes[to]) <= SMALL) {
                bytes = bytes.saturating_add(sizes[to]);
                to += 1;
            }
            let asked = usize::try_from(made_bytes.saturating_add(bytes)).unwrap_or(usize::MAX);
            memory.try_resize(asked)?;
            let rows = to - from;
            let slice = |arg: &ColumnarValue| match arg {
                ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, rows)),
                scalar @ ColumnarValue::Scalar(_) => scalar.clone(),
            };
            let args = ScalarFunctionArgs {
                args: args.args.iter().map(slice).collect(),
                arg_fields: args.arg_fields.clone(),
                number_rows: rows,
                return_field: Arc::clone(&args.return_field),
                config_options: Arc::clone(&args.config_options),
            };
            let answer = self.function.invoke_with_args(args)?.into_array(rows)?;
            made_bytes += answer.get_array_memory_size() as u64;
            if narrow && made_bytes > i32::MAX as u64 {
                return Err(DataFusionError::ResourcesExhausted(format!(
                    "`{name}` would make more than 2 GB of the {} rows of a batch",
                    sizes.len()
                )));
            }
            made.push(answer);
            from = to;
        }
        if let [one] = made.as_slice() {
            return Ok(ColumnarValue::Array(held(one, memory)?));
        }
        // The slices and what they become are there at the same time; afterwards that, and what the operator above makes of it: a filter
        // and a sort copy rows.
        memory.try_resize(usize::try_from(made_bytes.saturating_mul(2)).unwrap_or(usize::MAX))?;
        let parts: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(held(&arrow::compute::concat(&parts)?, memory)?))
    }

    /// None yet of the memory pool.
    fn memory(&self) -> MemoryReservation {
        MemoryConsumer::new(format!("texts and lists of {}", self.name())).register(&self.bounds.pool)
    }

    /// An answer whose size was not known before, asked of the pool if it is large.
    fn counted(&self, answer: ColumnarValue) -> Result<ColumnarValue> {
        let ColumnarValue::Array(array) = &answer else { return Ok(answer) };
        let bytes = array.get_buffer_memory_size();
        // Views and lists may be those of the argument.
        if bytes as u64 <= SMALL || !matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8) {
            return Ok(answer);
        }
        let memory = self.memory();
        memory.try_grow(bytes)?;
        Ok(ColumnarValue::Array(held(array, memory)?))
    }

    fn check_answer(&self, answer: &ColumnarValue) -> Result<()> {
        let array = match answer {
            ColumnarValue::Array(array) => Arc::clone(array),
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
        };
        // The bytes of all rows are at least those of one.
        if array.get_buffer_memory_size() <= self.bounds.max_value() {
            return Ok(());
        }
        let largest = value_bytes(&array).into_iter().max().unwrap_or(0);
        self.bounds.check(largest, self.function.name())
    }
}

/// Whether places in the bytes of a column of this type are counted with 32 bits.
fn has_narrow_offsets(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..))
}

impl ScalarUDFImpl for Bounded {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(sizes) = self.growth.sizes(&args.args, args.number_rows)? else {
            let answer = self.function.invoke_with_args(args)?;
            self.check_answer(&answer)?;
            return self.counted(answer);
        };
        self.bounds.check(sizes.iter().copied().max().unwrap_or(0), self.function.name())?;
        let all = sizes.iter().fold(0_u64, |all, size| all.saturating_add(*size));
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if all <= SMALL || is_constant {
            // One value, or little: no batch of it is built.
            let memory = self.memory();
            let asked = if is_constant { sizes.first().copied().unwrap_or(0) } else { all };
            if asked > SMALL / 4 {
                memory.try_grow(usize::try_from(asked).unwrap_or(usize::MAX))?;
            }
            return self.function.invoke_with_args(args);
        }
        self.in_slices(&args, &sizes)
    }

    // Not `simplify`: of `concat` it makes unbounded ones.
    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn schema_name(&self, args: &[Expr]) -> Result<String>;
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef>;
        fn is_strict(&self) -> bool;
        fn short_circuits(&self) -> bool;
        fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)>;
        fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval>;
        fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>>;
        fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties>;
        fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool>;
        fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool>;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

/// The names of the functions that [`Bounds::wrap`] wraps.
pub fn names() -> impl Iterator<Item = &'static str> {
    sizes::GROWTH.iter().map(|(name, _)| *name)
}
