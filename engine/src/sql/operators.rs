//! Macros for the methods of `ExecutionPlan` that are alike in most of our operators: name and inputs, number of rows, and what an operator
//! answers that hands rows on unchanged.
//!
//! ```text
//! impl ExecutionPlan for StoppableExec {
//!     one_input!("StoppableExec", |this, input| Ok(Arc::new(StoppableExec::new(input, &this.stop))));
//!     no_expressions!();
//!     …
//! }
//! ```

/// The methods of an `ExecutionPlan` with the field `input`. `$anew` makes the operator for another input; it captures nothing.
macro_rules! one_input {
    ($name:literal, $anew:expr) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::common::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            type Plan = ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>;
            let anew: fn(&Self, Plan) -> ::datafusion::common::Result<Plan> = $anew;
            match <[_; 1]>::try_from(children) {
                Ok([input]) => anew(&self, input),
                Err(children) => {
                    ::datafusion::common::internal_err!("{} has one input, not {}", $name, children.len())
                }
            }
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::common::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            use ::datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        }
    };
}

/// The methods of an `ExecutionPlan` that has no input.
macro_rules! no_inputs {
    () => {
        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![]
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            _: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::common::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            Ok(self)
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            _: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::common::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            Ok(self)
        }
    };
}

/// The method of an `ExecutionPlan` that computes no expressions.
macro_rules! no_expressions {
    () => {
        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_expr::PhysicalExpr>,
            ) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

/// The methods of an `ExecutionPlan` with the field `properties` that gives a row for each row of its one input, in the same partitions.
macro_rules! row_for_row {
    () => {
        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<::datafusion::physical_plan::statistics::ChildStats> {
            vec![::datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            inputs: &[::std::sync::Arc<::datafusion::common::Statistics>],
            _: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::common::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            let mut statistics = ::datafusion::common::Statistics::new_unknown(&self.schema());
            if let [input] = inputs {
                statistics.num_rows = input.num_rows;
            }
            Ok(::std::sync::Arc::new(statistics))
        }
    };
}

/// The methods of an `ExecutionPlan` that hands on the rows of its one input, all of them and in their order.
macro_rules! same_rows {
    () => {
        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn cardinality_effect(&self) -> ::datafusion::physical_plan::execution_plan::CardinalityEffect {
            ::datafusion::physical_plan::execution_plan::CardinalityEffect::Equal
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<::datafusion::physical_plan::statistics::ChildStats> {
            vec![::datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            inputs: &[::std::sync::Arc<::datafusion::common::Statistics>],
            _: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::common::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            let unknown = || ::std::sync::Arc::new(::datafusion::common::Statistics::new_unknown(&self.schema()));
            Ok(inputs.first().map_or_else(unknown, ::std::sync::Arc::clone))
        }
    };
}

pub(crate) use {no_expressions, no_inputs, one_input, row_for_row, same_rows};
