//! Codec: operators of ours as bytes, and back.
//!
//! DataFusion's own operators and functions have an encoding; functions travel by their names, and both sides have the same ones
//! ([`super::VERSION`]). Expressions and schemas of our operators go as plans of DataFusion's that hold them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{Result, exec_datafusion_err, internal_err, not_impl_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{ExecutionPlanProperties, Partitioning};
use datafusion_distributed::DistributedTaskContext;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use serde::{Deserialize, Serialize};
use tq_udfs::relation::RelationFunction;
use tq_udfs::relation::exec::RelationExec;
use tq_udfs::relation::node::RelationCall;

use super::closed::ClosedExec;
use crate::sql::emitted::with_functions;
use crate::sql::order::deal::DealExec;
use crate::sql::order::position::PositionExec;
use crate::sql::order::waiting::Turns;
use crate::sql::own_words::OwnWordsExec;
use crate::store::{Away, Segments};

/// An operator of ours as it travels, in JSON.
#[derive(Debug, Serialize, Deserialize)]
enum Node {
    /// A scan of a store.
    Scan(Away),
    /// The end of rows, of so many tasks.
    Closed { active: usize },
    /// Positions of rows.
    Position,
    /// Dictionaries of a batch's own words.
    OwnWords,
    /// Rows dealt out to so many partitions, by keys or by turns.
    Deal { keys: Option<Vec<u8>>, partitions: usize, whole: bool },
    /// A relation function.
    Relation { function: String, omitted: Vec<bool>, options: Option<Vec<u8>>, schema: Vec<u8>, by_lane: bool },
}

/// Encodes and decodes in a session.
#[derive(Debug)]
pub(super) struct TqCodec {
    /// The rows that scans find.
    pub(super) segments: Arc<Segments>,
    /// The functions that calls find: those of the engine.
    pub(super) functions: Vec<Arc<dyn RelationFunction>>,
    /// Functions that only plans name.
    pub(super) of_plans: Vec<Arc<ScalarUDF>>,
}

impl TqCodec {
    /// A context that knows the functions of plans, too.
    pub(super) fn knowing(&self, context: &TaskContext) -> TaskContext {
        let mut functions = context.scalar_functions().clone();
        functions.extend(self.of_plans.iter().map(|function| (function.name().to_owned(), Arc::clone(function))));
        with_functions(context, functions)
    }

    /// Expressions over rows of a schema, as the columns of a plan that is never executed.
    fn bytes_of(
        &self,
        expressions: &[Arc<dyn PhysicalExpr>],
        schema: SchemaRef,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Vec<u8>> {
        let rows = Arc::new(EmptyExec::new(schema));
        let named = |(at, expression): (usize, &Arc<dyn PhysicalExpr>)| {
            ProjectionExpr::new(Arc::clone(expression), at.to_string())
        };
        let held = ProjectionExec::try_new(expressions.iter().enumerate().map(named), rows)?;
        Ok(physical_plan_to_bytes_with_proto_converter(Arc::new(held), self, converter)?.to_vec())
    }

    fn expressions(
        &self,
        bytes: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let held = self.held(bytes, context, converter)?;
        let Some(held) = held.downcast_ref::<ProjectionExec>() else {
            return internal_err!("the expressions of an operator are not readable");
        };
        Ok(held.expr().iter().map(|column| Arc::clone(&column.expr)).collect())
    }

    fn held(
        &self,
        bytes: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        physical_plan_from_bytes_with_proto_converter(bytes, context, self, converter)
    }

    fn call(&self, name: &str, omitted: Vec<bool>) -> Result<RelationCall> {
        let function = self.functions.iter().find(|function| function.name() == name);
        match function.filter(|function| function.inputs().len() == omitted.len()) {
            Some(function) => Ok(RelationCall { function: Arc::clone(function), omitted }),
            None => internal_err!("no relation function `{name}` of {} inputs", omitted.len()),
        }
    }
}

impl PhysicalExtensionCodec for TqCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let node = serde_json::from_slice(buf)
            .map_err(|error| exec_datafusion_err!("an operator is not readable: {error}"))?;
        match (node, inputs) {
            (Node::Scan(scan), []) => scan.scan(&self.segments),
            (Node::Closed { active }, [input]) => Ok(Arc::new(ClosedExec::new(Arc::clone(input), active))),
            (Node::OwnWords, [input]) => Ok(Arc::new(OwnWordsExec::new(Arc::clone(input)))),
            (Node::Deal { keys, partitions, whole }, [input]) => {
                let partitioning = match keys {
                    Some(keys) => Partitioning::Hash(self.expressions(&keys, ctx, proto_converter)?, partitions),
                    None => Partitioning::RoundRobinBatch(partitions),
                };
                let turns = if whole { Turns::Whole } else { Turns::BatchByBatch };
                Ok(Arc::new(DealExec::new(Arc::clone(input), partitioning, turns)))
            }
            (Node::Position, [input]) => {
                let task = ctx.session_config().get_extension::<DistributedTaskContext>();
                let before = task.map_or(0, |task| task.task_index) * input.output_partitioning().partition_count();
                Ok(Arc::new(PositionExec::try_new(Arc::clone(input), before)?))
            }
            (Node::Relation { function, omitted, options, schema, by_lane }, inputs) => {
                let call = self.call(&function, omitted)?;
                let options = match options {
                    Some(bytes) => self.expressions(&bytes, ctx, proto_converter)?,
                    None => vec![],
                };
                let schema: SchemaRef = self.held(&schema, ctx, proto_converter)?.schema();
                if inputs.len() != call.omitted.len() || options.len() != call.function.options().len() {
                    return internal_err!("`{function}` with {} inputs", inputs.len());
                }
                let operator = RelationExec::new(call, options, inputs.to_vec(), schema);
                match (by_lane, inputs) {
                    (true, [first, ..]) => Ok(Arc::new(operator.with_first_by_lane(Arc::clone(first)))),
                    _ => Ok(Arc::new(operator)),
                }
            }
            (_, inputs) => internal_err!("an operator of ours with {} inputs", inputs.len()),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let encoded = if let Some(deal) = node.downcast_ref::<DealExec>() {
            let (keys, partitions) = match &deal.properties().partitioning {
                Partitioning::Hash(keys, partitions) => {
                    (Some(self.bytes_of(keys, deal.schema(), proto_converter)?), *partitions)
                }
                Partitioning::RoundRobinBatch(partitions) => (None, *partitions),
                other => return not_impl_err!("{other} does not travel"),
            };
            Node::Deal { keys, partitions, whole: deal.turns() == Turns::Whole }
        } else if let Some(scan) = Away::of(node.as_ref()) {
            Node::Scan(scan)
        } else if let Some(closed) = node.downcast_ref::<ClosedExec>() {
            Node::Closed { active: closed.active() }
        } else if node.is::<PositionExec>() {
            Node::Position
        } else if node.is::<OwnWordsExec>() {
            Node::OwnWords
        } else if let Some(relation) = node.downcast_ref::<RelationExec>() {
            let empty = Arc::new(EmptyExec::new(relation.schema()));
            Node::Relation {
                function: relation.call().function.name().to_owned(),
                omitted: relation.call().omitted.clone(),
                options: match relation.options() {
                    [] => None,
                    options => Some(self.bytes_of(options, Arc::new(Schema::empty()), proto_converter)?),
                },
                schema: physical_plan_to_bytes_with_proto_converter(empty, self, proto_converter)?.to_vec(),
                by_lane: relation.is_by_lane(),
            }
        } else {
            return not_impl_err!("{} does not travel", node.name());
        };
        *buf = serde_json::to_vec(&encoded).map_err(|error| exec_datafusion_err!("{error}"))?;
        Ok(())
    }
}
