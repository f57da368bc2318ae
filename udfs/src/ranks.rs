//! Makes `row_number`, `rank`, `dense_rank` and `ntile` return BIGINT, as in PostgreSQL and DuckDB.
//!
//! DataFusion's return unsigned numbers, so that `-rank() OVER (…)` would be an error. [`signed`] wraps one of them:
//! everything is delegated, only the results are cast.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::window_state::WindowAggState;
use datafusion_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion_physical_expr::PhysicalExpr;

use crate::wrapped::of_wrapped;

/// The names of DataFusion's functions that [`signed`] wraps.
pub const RANKS: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];

/// The same function, whose results are BIGINT.
pub fn signed(function: Arc<WindowUDF>) -> WindowUDF {
    WindowUDF::from(Signed { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Signed {
    function: Arc<WindowUDF>,
}

impl WindowUDFImpl for Signed {
    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(self.function.field(args)?.as_ref().clone().with_data_type(DataType::Int64)))
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator(self.function.partition_evaluator_factory(args)?)))
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        // What it would be replaced by is not wrapped.
        match self.function.reverse_expr() {
            ReversedUDWF::Identical => ReversedUDWF::Identical,
            _ => ReversedUDWF::NotSupported,
        }
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.function.inner().limit_effect(args)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>>;
        fn sort_options(&self) -> Option<SortOptions>;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

#[derive(Debug)]
struct Evaluator(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for Evaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.0.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all(values, rows)?, &DataType::Int64)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.0.evaluate(values, range)?.cast_to(&DataType::Int64)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all_with_rank(rows, ranks)?, &DataType::Int64)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.0.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}
