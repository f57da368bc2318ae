//! `a = ANY (list)` and `a < ALL (list)` with the three values of SQL, and lists by their order.
//!
//! DataFusion (55.2) looks for the value in the list, or compares it with the least and the greatest element: a NULL in the list counts as
//! if it were not there. It also sorts a NULL within lists before all values where `<` compares them, and behind where ORDER BY does.
//!
//! ```text
//! a = ANY (ARRAY[b, c])       a IN (b, c)
//! a <> ALL (ARRAY[b, c])      a NOT IN (b, c)
//! a < ANY (list)              "< ANY"(list, a): a < list[1] OR a < list[2] OR …; false of the empty list
//! a < ALL (list)              "< ALL"(list, a): a < list[1] AND a < list[2] AND …; true of the empty list
//! list < other                "list <"(list, other): a NULL is behind all values, as in PostgreSQL
//! ```
//! Quantifiers over subqueries are not of here (`subqueries.rs`, `rows.rs`).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, GenericListArray, OffsetSizeTrait, UInt64Array, make_comparator,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, and_kleene, or_kleene, take};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply_cmp;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr, Ident};

use crate::sql::rows;

/// The operators that ANY and ALL stand behind.
const OPERATORS: [(BinaryOperator, Operator); 6] = [
    (BinaryOperator::Eq, Operator::Eq),
    (BinaryOperator::NotEq, Operator::NotEq),
    (BinaryOperator::Lt, Operator::Lt),
    (BinaryOperator::LtEq, Operator::LtEq),
    (BinaryOperator::Gt, Operator::Gt),
    (BinaryOperator::GtEq, Operator::GtEq),
];

/// Makes an operator of a comparison with the elements of a list, which [`Quantifiers`] plans, or IN.
pub(super) fn rewrite(expr: &mut SqlExpr) {
    let (left, op, right, quantifier) = match expr {
        SqlExpr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, "ANY"),
        SqlExpr::AllOp { left, compare_op, right } => (left, compare_op, right, "ALL"),
        _ => return,
    };
    if matches!(right.as_ref(), SqlExpr::Subquery(_)) || OPERATORS.iter().all(|(known, _)| known != op) {
        return;
    }
    let nothing = || Box::new(SqlExpr::Identifier(Ident::new("")));
    let (left, right) = (std::mem::replace(left, nothing()), std::mem::replace(right, nothing()));
    let negated = *op == BinaryOperator::NotEq;
    let is_in = if negated { quantifier == "ALL" } else { *op == BinaryOperator::Eq && quantifier == "ANY" };
    let is_value = |value: &SqlExpr| !matches!(value, SqlExpr::Array(_)) && rows::values_of(value).is_none();
    *expr = match *right {
        SqlExpr::Array(array)
            if is_in && !array.elem.is_empty() && is_value(&left) && array.elem.iter().all(is_value) =>
        {
            SqlExpr::InList { expr: left, list: array.elem, negated }
        }
        list => SqlExpr::BinaryOp {
            left,
            op: BinaryOperator::Custom(format!("{op} {quantifier}")),
            right: Box::new(SqlExpr::Nested(Box::new(list))),
        },
    };
}

/// Plans the operators that [`rewrite`] makes.
#[derive(Debug)]
pub(super) struct Quantifiers;

impl ExprPlanner for Quantifiers {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let BinaryOperator::Custom(name) = &expr.op else { return Ok(PlannerResult::Original(expr)) };
        let known = |(written, op): (BinaryOperator, Operator)| {
            let over = [("ANY", Over::Any), ("ALL", Over::All)].into_iter();
            over.map(move |(quantifier, over)| (format!("{written} {quantifier}"), op, over)).collect::<Vec<_>>()
        };
        match OPERATORS.into_iter().flat_map(known).find(|(known, ..)| known == name) {
            Some((name, op, over)) => Ok(PlannerResult::Planned(call(
                Compares { name, op, over, signature: signature() },
                expr.right,
                expr.left,
            ))),
            None => Ok(PlannerResult::Original(expr)),
        }
    }
}

/// `left op right` of lists or structs.
pub(super) fn ordered(left: Expr, op: Operator, right: Expr) -> Expr {
    call(Compares { name: format!("list {op}"), op, over: Over::Nothing, signature: signature() }, left, right)
}

/// Whether a function compares a list, its first argument, with its second one.
pub(super) fn compares(function: &ScalarUDF) -> bool {
    function.inner().is::<Compares>()
}

fn signature() -> Signature {
    Signature::user_defined(Volatility::Immutable)
}

fn call(function: Compares, first: Expr, second: Expr) -> Expr {
    ScalarUDF::from(function).call(vec![first, second])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Over {
    /// Holds for an element of the first argument.
    Any,
    /// Holds for each of them.
    All,
    /// Holds for the arguments themselves.
    Nothing,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Compares {
    name: String,
    op: Operator,
    over: Over,
    signature: Signature,
}

impl ScalarUDFImpl for Compares {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [list, value] = types else { return internal_err!("{} has two arguments", self.name) };
        let common = |left, right| BinaryTypeCoercer::new(left, &self.op, right).get_input_types();
        if self.over == Over::Nothing {
            return common(list, value).map(|(left, right)| vec![left, right]);
        }
        let element = match list {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => item.data_type(),
            DataType::Null => value,
            other => {
                return plan_err!(
                    "ANY and ALL take a list or a subquery, found {other}: write `x = ANY (ARRAY[a, b])`, or `x IN (a, b)`"
                );
            }
        };
        let (value, element) = common(value, element)?;
        let item = Arc::new(Field::new_list_field(element, true));
        let is_large = matches!(list, DataType::LargeList(_));
        Ok(vec![if is_large { DataType::LargeList(item) } else { DataType::List(item) }, value])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [list, value] = args.args.as_slice() else { return internal_err!("{} has two arguments", self.name) };
        match (self.over, list) {
            (Over::Nothing, _) => {
                let (left, right) = (list.to_array(args.number_rows)?, value.to_array(args.number_rows)?);
                Ok(ColumnarValue::Array(Arc::new(in_order(self.op, &left, &right)?)))
            }
            (_, ColumnarValue::Scalar(list)) => self.of_one(list, value, args.number_rows),
            (_, ColumnarValue::Array(lists)) => {
                let values = value.to_array(args.number_rows)?;
                let answers = match lists.data_type() {
                    DataType::LargeList(_) => self.of_each(lists.as_list::<i64>(), &values)?,
                    _ => self.of_each(lists.as_list::<i32>(), &values)?,
                };
                Ok(ColumnarValue::Array(Arc::new(answers)))
            }
        }
    }
}

impl Compares {
    /// Many values beside one list.
    fn of_one(&self, list: &ScalarValue, value: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
        if list.is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        }
        let list = list.to_array()?;
        let elements = match list.data_type() {
            DataType::LargeList(_) => list.as_list::<i64>().value(0),
            _ => list.as_list::<i32>().value(0),
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if is_scalar { 1 } else { rows })?;
        let mut answer = BooleanArray::from(vec![self.over == Over::All; values.len()]);
        for at in 0..elements.len() {
            let element = ScalarValue::try_from_array(&elements, at)?;
            let holds = compared(self.op, &values, &ColumnarValue::Scalar(element))?;
            let combine = if self.over == Over::All { and_kleene } else { or_kleene };
            answer = combine(&answer, &holds)?;
        }
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?),
            false => ColumnarValue::Array(Arc::new(answer)),
        })
    }

    /// Each value beside a list of its own.
    fn of_each<O: OffsetSizeTrait>(&self, lists: &GenericListArray<O>, values: &ArrayRef) -> Result<BooleanArray> {
        let (elements, repeated) = beside(lists, values)?;
        let holds = compared(self.op, &repeated, &ColumnarValue::Array(elements))?;
        let mut first = 0;
        let answers = (0..lists.len()).map(|row| {
            let count = lists.value_length(row).as_usize();
            let elements = first..first + count;
            first += count;
            if lists.is_null(row) {
                return None;
            }
            let decides = |at: usize| holds.is_valid(at) && holds.value(at) == (self.over == Over::Any);
            match elements.clone().any(decides) {
                true => Some(self.over == Over::Any),
                false if elements.into_iter().any(|at| holds.is_null(at)) => None,
                false => Some(self.over == Over::All),
            }
        });
        Ok(answers.collect())
    }
}

/// The elements of lists, and for each the value beside its list.
pub(super) fn beside<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    values: &ArrayRef,
) -> Result<(ArrayRef, ArrayRef)> {
    let offsets = lists.value_offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[lists.len()].as_usize());
    let rows = (0..lists.len()).flat_map(|row| std::iter::repeat_n(row as u64, lists.value_length(row).as_usize()));
    let repeated = take(values, &UInt64Array::from_iter_values(rows), None)?;
    Ok((lists.values().slice(first, last - first), repeated))
}

fn compared(op: Operator, left: &ArrayRef, right: &ColumnarValue) -> Result<BooleanArray> {
    if left.data_type().is_nested() {
        return in_order(op, left, &right.to_array(left.len())?);
    }
    let holds = apply_cmp(op, &ColumnarValue::Array(Arc::clone(left)), right)?.into_array(left.len())?;
    Ok(holds.as_boolean().clone())
}

/// NULL where a side is; within, a NULL is equal to NULL and behind all values.
fn in_order(op: Operator, left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
    let order = make_comparator(left, right, SortOptions { descending: false, nulls_first: false })?;
    let holds = (0..left.len()).map(|row| {
        let order = order(row, row);
        match op {
            Operator::Eq => order.is_eq(),
            Operator::NotEq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        }
    });
    let nulls = NullBuffer::union(left.logical_nulls().as_ref(), right.logical_nulls().as_ref());
    Ok(BooleanArray::new(holds.collect(), nulls))
}
