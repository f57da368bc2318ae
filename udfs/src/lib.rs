//! The functions of `tq`: pure computations over Arrow arrays, and their SQL interfaces.
//!
//! One file per function. Nothing here reads a file, asks a clock, prints, or knows a trace format; the engine decides
//! what the arrays mean. Aggregates and windows accept any `BIGINT` start and finish; relation functions
//! ([`relation`]) take whole relations.
//!
//! [`scalar_functions`], [`aggregate_functions`], [`window_functions`] and [`relation_functions`] are the registry: what
//! they return is registered by the engine and listed by `tq functions`. [`keeps_time::keeps_time`] and [`plain_results::plainly`]
//! wrap functions that DataFusion provides.

mod aggregate;
pub mod arguments;
pub mod bins;
pub mod bits;
pub mod bounded;
pub mod busy;
pub mod call_tree;
pub mod canonical;
pub mod centroids;
pub mod checked;
pub mod clock_offsets;
pub mod cluster_view;
pub mod compare_runs;
pub mod component_metrics;
pub mod component_rows;
pub mod computed;
pub mod concurrency;
pub mod critical_path;
pub mod distinct_order;
pub mod domains;
pub mod efficiency_diffs;
mod exact;
pub mod exact_aggregates;
mod executed;
pub mod executed_path;
pub mod explain_change;
pub mod family;
pub mod floating_row;
pub mod floating_rows;
pub mod gaps;
pub mod glob;
pub mod graph;
pub mod imbalance;
pub mod intersect;
pub mod interval_trunc;
pub mod keeps_time;
pub mod lanes;
pub mod max_concurrency;
pub mod message_matrix;
pub mod mode;
pub mod modulo;
mod multiset;
pub mod occupancy;
pub mod overview;
pub mod parts;
pub mod percentile;
pub mod permutation;
pub mod plain_results;
pub mod ranks;
pub mod ready;
pub mod regular_expressions;
pub mod relation;
mod retyped;
pub mod rounded;
pub mod scaling;
pub mod self_time;
pub mod shifts;
pub mod sign;
pub mod slack;
pub mod spans;
pub mod subtract;
pub mod texts_beside_times;
pub mod ticks;
pub mod time;
pub mod time_slice;
pub mod timeline;
mod varint;
pub mod what_if;
mod wrapped;

use std::sync::Arc;

use datafusion_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use crate::checked::arithmetic::{CheckedAdd, CheckedMultiply, CheckedNegate, CheckedSubtract};
use crate::checked::divide::IntegerDivide;
use crate::checked::sum::CheckedSum;
use crate::relation::RelationFunction;
use crate::ticks::Tick;

/// Every scalar function, for sessions of this tick.
pub fn scalar_functions(tick: Tick) -> Vec<Arc<ScalarUDF>> {
    let functions = vec![
        ScalarUDF::from(time::Us::new(tick)),
        ScalarUDF::from(time::Ms::new(tick)),
        ScalarUDF::from(time::S::new(tick)),
        ScalarUDF::from(time::ToUs::new(tick)),
        ScalarUDF::from(time::ToMs::new(tick)),
        ScalarUDF::from(time::ToS::new(tick)),
        ScalarUDF::from(time::TimeText::new(tick)),
        ScalarUDF::from(time_slice::SliceFrom::new(None)),
        ScalarUDF::from(time_slice::SliceTo::new(None)),
        ScalarUDF::from(glob::Glob::new()),
        ScalarUDF::from(scaling::Speedup::new()),
        ScalarUDF::from(scaling::Efficiency::new()),
        ScalarUDF::from(CheckedAdd::new()),
        ScalarUDF::from(CheckedSubtract::new()),
        ScalarUDF::from(CheckedMultiply::new()),
        ScalarUDF::from(CheckedNegate::new()),
        ScalarUDF::from(modulo::Mod::new()),
        ScalarUDF::from(sign::Sign::new()),
        ScalarUDF::from(IntegerDivide::new()),
    ];
    functions.into_iter().map(Arc::new).collect()
}

/// Every aggregate function. `sum` takes the place of DataFusion's, which is passed in for the types that ours does not
/// check.
pub fn aggregate_functions(datafusions_sum: Arc<AggregateUDF>) -> Vec<Arc<AggregateUDF>> {
    let functions = vec![
        AggregateUDF::from(busy::Busy::new()),
        AggregateUDF::from(occupancy::Occupancy::new()),
        AggregateUDF::from(max_concurrency::MaxConcurrency::new()),
        AggregateUDF::from(max_concurrency::MeanConcurrency::new()),
        AggregateUDF::from(imbalance::Imbalance::new()),
        AggregateUDF::from(imbalance::ImbalancePercent::new()),
        AggregateUDF::from(imbalance::LoadBalance::new()),
        AggregateUDF::from(imbalance::Cv::new()),
        AggregateUDF::from(imbalance::Gini::new()),
        AggregateUDF::from(mode::Mode::new()),
        AggregateUDF::from(CheckedSum::new(datafusions_sum)),
    ];
    functions.into_iter().map(Arc::new).collect()
}

/// Every relation function, by name.
pub fn relation_functions() -> Vec<Arc<dyn RelationFunction>> {
    vec![
        Arc::new(critical_path::CriticalPath),
        Arc::new(executed_path::ExecutedPath),
        Arc::new(compare_runs::CompareRuns),
        Arc::new(explain_change::ExplainChange),
        Arc::new(self_time::SelfTime),
        Arc::new(call_tree::CallTree),
        Arc::new(family::ancestors::Ancestors),
        Arc::new(family::descendants::Descendants),
        Arc::new(gaps::Gaps),
        Arc::new(intersect::Intersect),
        Arc::new(subtract::Subtract),
        Arc::new(concurrency::Concurrency),
        Arc::new(floating_rows::FloatingRowsOfLanes),
        Arc::new(overview::Overview),
        Arc::new(timeline::Timeline),
        Arc::new(ready::Ready),
        Arc::new(slack::Slack),
        Arc::new(cluster_view::ClusterView),
        Arc::new(component_metrics::ComponentMetrics),
        Arc::new(component_rows::ComponentRows),
        Arc::new(message_matrix::MessageMatrix),
        Arc::new(clock_offsets::ClockOffsets),
        Arc::new(what_if::WhatIf),
        Arc::new(efficiency_diffs::EfficiencyDiffs),
    ]
}

/// Every window function.
pub fn window_functions() -> Vec<Arc<WindowUDF>> {
    vec![Arc::new(WindowUDF::from(floating_row::FloatingRow::new()))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_expr::Documentation;

    /// A function's documentation answers the questions of every user, and names what the signature names.
    fn check(name: &str, documentation: Option<&Documentation>, parameters: Option<&[String]>) {
        let documentation = documentation.unwrap_or_else(|| panic!("{name} has no documentation"));
        let first = documentation.description.lines().next().unwrap();
        assert!(first.ends_with('.') || documentation.description.contains(". "), "{name}: {first}");
        assert!(documentation.sql_example.as_ref().is_some_and(|sql| sql.starts_with("SELECT ")), "{name}: example");
        assert!(documentation.syntax_example.starts_with(name), "{name}: {}", documentation.syntax_example);
        for word in ["Rows:", "Units:", "NULL", "Errors:", "Cost:"] {
            assert!(documentation.description.contains(word), "{name} does not speak of {word}");
        }
        let documented = documentation.arguments.iter().flatten().map(|argument| argument.0.as_str());
        let named = parameters.unwrap_or_else(|| panic!("{name} has no parameter names"));
        assert!(documented.eq(named.iter().map(String::as_str)), "{name}: {named:?}");
    }

    #[test]
    fn functions_are_documented() {
        for function in scalar_functions(Tick::Nanosecond) {
            check(function.name(), function.documentation(), function.signature().parameter_names.as_deref());
        }
        // Any aggregate can stand in for DataFusion's sum here.
        for function in aggregate_functions(Arc::new(AggregateUDF::from(busy::Busy::new()))) {
            check(function.name(), function.documentation(), function.signature().parameter_names.as_deref());
        }
        for function in window_functions() {
            check(function.name(), function.documentation(), function.signature().parameter_names.as_deref());
        }
        for relation in relation_functions() {
            let names: Vec<String> =
                relation.parameters().iter().map(|parameter| parameter.name().to_owned()).collect();
            check(relation.name(), Some(relation.documentation()), Some(&names));
        }
    }
}
