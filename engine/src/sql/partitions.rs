//! COPY … PARTITIONED BY: the folder of NULL.
//!
//! DataFusion (55.2) takes what lies beneath a NULL for its value: `a=0` for numbers, `a=` for texts, the first word of a dictionary. Folders are
//! named by texts here, that of NULL as Hive, DuckDB and Spark name it.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};

/// The folder of NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Makes texts of the columns that name folders.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Copy(mut copy) = plan else { return Ok(plan) };
    if copy.partition_by.is_empty() {
        return Ok(LogicalPlan::Copy(copy));
    }
    let columns = copy.input.schema().columns().into_iter().map(|column| {
        let names_folder = copy.partition_by.contains(&column.name);
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let column = Expr::Column(column);
        match names_folder {
            true => coalesce(vec![cast(column, DataType::Utf8), lit(NULL)]).alias_qualified(relation, name),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(copy.input)).project(columns)?.build()?;
    copy.input = Arc::new(input);
    Ok(LogicalPlan::Copy(copy))
}
