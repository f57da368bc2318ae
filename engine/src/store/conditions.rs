//! Conditions: the part of a filter from which statistics can tell that a run, a group of rows or a page holds no row that passes.
//!
//! A condition is necessary and never sufficient: DataFusion applies the filter to the rows that are left. Statistics are converted to the
//! session's ticks and identities in 128 bits, so that literals are compared as they are and nothing is rounded.

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{and, is_null, or};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator};

use crate::tables::{ColumnType, Table};

/// What must hold of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "cluster", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Condition {
    /// The word in a column is one of these.
    Words { column: usize, words: Vec<String> },
    /// A whole number lies between these, both included.
    Within { column: usize, least: i128, greatest: i128 },
    /// A column is NULL.
    Null { column: usize },
    /// All of these.
    All(Vec<Condition>),
    /// One of these.
    Any(Vec<Condition>),
}

/// What is known of the values that a column has in some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing.
    Unknown,
    /// All are NULL.
    Null,
    /// Whole numbers lie between these, both included.
    Numbers(i128, i128),
    /// Words lie between these, both included.
    Words(Vec<u8>, Vec<u8>),
}

impl Known {
    /// What is known of the values of both together.
    pub(super) fn or(self, other: Known) -> Known {
        match (self, other) {
            (Known::Null, known) | (known, Known::Null) => known,
            (Known::Numbers(a, b), Known::Numbers(c, d)) => Known::Numbers(a.min(c), b.max(d)),
            _ => Known::Unknown,
        }
    }

    /// What is known of sums of a value of each.
    pub(super) fn plus(self, other: Known) -> Known {
        match (self, other) {
            (Known::Null, _) | (_, Known::Null) => Known::Null,
            (Known::Numbers(a, b), Known::Numbers(c, d)) => Known::Numbers(a + c, b + d),
            _ => Known::Unknown,
        }
    }
}

impl Condition {
    /// What a filter on a table demands; `None` where statistics cannot tell.
    pub(super) fn of(table: Table, filter: &Expr) -> Option<Condition> {
        let column_of = |expr: &Expr| match expr {
            Expr::Column(column) => table.spec().columns.iter().position(|known| known.name == column.name),
            _ => None,
        };
        match filter {
            Expr::BinaryExpr(binary) if binary.op == Operator::And => {
                let both = [&binary.left, &binary.right];
                let known: Vec<Condition> = both.iter().filter_map(|side| Condition::of(table, side)).collect();
                (!known.is_empty()).then_some(Condition::All(known))
            }
            Expr::BinaryExpr(binary) if binary.op == Operator::Or => {
                let both = [&binary.left, &binary.right];
                let known: Option<Vec<Condition>> = both.iter().map(|side| Condition::of(table, side)).collect();
                known.map(Condition::Any)
            }
            Expr::BinaryExpr(binary) => {
                let (column, op, value) = match (column_of(&binary.left), column_of(&binary.right)) {
                    (Some(column), None) => (column, binary.op, literal(&binary.right)?),
                    (None, Some(column)) => (column, binary.op.swap()?, literal(&binary.left)?),
                    _ => return None,
                };
                if is_word(table, column) {
                    return (op == Operator::Eq).then_some(Condition::Words { column, words: vec![text(value)?] });
                }
                let value = number(value).filter(|_| is_number(table, column))?;
                let (least, greatest) = match op {
                    Operator::Eq => (value, value),
                    Operator::Lt => (i128::MIN, value - 1),
                    Operator::LtEq => (i128::MIN, value),
                    Operator::Gt => (value + 1, i128::MAX),
                    Operator::GtEq => (value, i128::MAX),
                    _ => return None,
                };
                Some(Condition::Within { column, least, greatest })
            }
            Expr::IsNull(column) => column_of(column).map(|column| Condition::Null { column }),
            Expr::Between(between) if !between.negated => {
                let column = column_of(&between.expr).filter(|column| is_number(table, *column))?;
                let (least, greatest) = (number(literal(&between.low)?)?, number(literal(&between.high)?)?);
                Some(Condition::Within { column, least, greatest })
            }
            Expr::InList(list) if !list.negated => {
                let column = column_of(&list.expr)?;
                let values = || list.list.iter().map(|value| literal(value));
                if is_word(table, column) {
                    let words: Option<Vec<String>> = values().map(|value| text(value?)).collect();
                    return Some(Condition::Words { column, words: words? });
                }
                let numbers: Option<Vec<i128>> = values().map(|value| number(value?)).collect();
                let numbers = numbers.filter(|_| is_number(table, column))?;
                let one = |number: &i128| Condition::Within { column, least: *number, greatest: *number };
                Some(Condition::Any(numbers.iter().map(one).collect()))
            }
            _ => None,
        }
    }

    /// The columns that it speaks of, but for `run`: a group of rows is of one run.
    pub(super) fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Condition::Words { column, .. } | Condition::Within { column, .. } | Condition::Null { column } => {
                columns.extend((*column > 0).then_some(*column));
            }
            Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| part.columns(columns)),
        }
    }

    /// The same of rows of which `may_be_null` tells which columns may be NULL.
    pub(super) fn of_rows<E>(&self, may_be_null: &impl Fn(usize) -> Result<bool, E>) -> Result<Condition, E> {
        let each = |parts: &[Condition]| -> Result<Vec<Condition>, E> {
            parts.iter().map(|part| part.of_rows(may_be_null)).collect()
        };
        Ok(match self {
            // One of none.
            Condition::Null { column } if !may_be_null(*column)? => Condition::Any(vec![]),
            Condition::All(parts) => Condition::All(each(parts)?),
            Condition::Any(parts) => Condition::Any(each(parts)?),
            same => same.clone(),
        })
    }

    /// Whether rows of the run of this name may meet it, of which `known` tells what their columns have.
    pub(super) fn may_hold(&self, run: &str, known: &impl Fn(usize) -> Known) -> bool {
        match self {
            Condition::Words { column: 0, words } => words.iter().any(|word| word == run),
            Condition::Words { column, words } => match known(*column) {
                Known::Null => false,
                Known::Words(least, greatest) => words
                    .iter()
                    .any(|word| least.as_slice() <= word.as_bytes() && word.as_bytes() <= greatest.as_slice()),
                _ => true,
            },
            Condition::Within { column, least, greatest } => match known(*column) {
                Known::Null => false,
                Known::Numbers(first, last) => first <= *greatest && *least <= last,
                _ => true,
            },
            Condition::Null { .. } => true,
            Condition::All(parts) => parts.iter().all(|part| part.may_hold(run, known)),
            Condition::Any(parts) => parts.iter().any(|part| part.may_hold(run, known)),
        }
    }

    /// Which rows of this run meet it.
    pub(super) fn rows(&self, run: &str, rows: usize, array: &impl Fn(usize) -> Option<ArrayRef>) -> BooleanArray {
        let all = || BooleanArray::from(vec![true; rows]);
        match self {
            Condition::Words { column: 0, words } => {
                BooleanArray::from(vec![words.iter().any(|word| word == run); rows])
            }
            Condition::Words { column, words } => {
                let array = array(*column);
                let Some(array) = array.as_ref().and_then(|array| array.as_dictionary_opt::<Int32Type>()) else {
                    return all();
                };
                let texts = array.values().as_string::<i32>();
                let holds: Vec<bool> =
                    texts.iter().map(|text| words.iter().any(|word| Some(word.as_str()) == text)).collect();
                (0..rows).map(|row| Some(array.key(row).is_some_and(|key| holds[key]))).collect()
            }
            Condition::Within { column, least, greatest } => {
                let array = array(*column);
                let Some(array) = array.as_ref().and_then(|array| array.as_primitive_opt::<Int64Type>()) else {
                    return all();
                };
                let holds = |value: i64| (*least..=*greatest).contains(&i128::from(value));
                array.iter().map(|value| Some(value.is_some_and(holds))).collect()
            }
            Condition::Null { column } => match array(*column) {
                Some(array) => is_null(&array).unwrap_or_else(|_| all()),
                None => all(),
            },
            Condition::All(parts) => {
                let each = parts.iter().map(|part| part.rows(run, rows, array));
                each.fold(all(), |one, other| and(&one, &other).unwrap_or(one))
            }
            Condition::Any(parts) => {
                let each = parts.iter().map(|part| part.rows(run, rows, array));
                each.fold(BooleanArray::from(vec![false; rows]), |one, other| {
                    or(&one, &other).unwrap_or_else(|_| all())
                })
            }
        }
    }
}

fn is_word(table: Table, column: usize) -> bool {
    table.spec().columns[column].column_type == ColumnType::Word
}

fn is_number(table: Table, column: usize) -> bool {
    matches!(table.spec().columns[column].column_type, ColumnType::Identity | ColumnType::Time | ColumnType::Integer)
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Dictionary(_, value) => text(value),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

fn number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int64(value) => value.map(i128::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn ranges_of_sums_and_unions() {
        let (a, b) = (Known::Numbers(1, 5), Known::Numbers(-3, 2));
        assert_eq!(a.clone().plus(b.clone()), Known::Numbers(-2, 7));
        assert_eq!(a.clone().or(b), Known::Numbers(-3, 5));
        assert_eq!(a.clone().plus(Known::Null), Known::Null);
        assert_eq!(a.clone().or(Known::Null), a);
        assert_eq!(a.clone().or(Known::Unknown), Known::Unknown);
        assert_eq!(a.plus(Known::Unknown), Known::Unknown);
    }

    #[test]
    fn filters_say_what_they_demand() {
        let of = |filter: Expr| Condition::of(Table::Tasks, &filter);
        let may = |filter: Expr, known: Known| of(filter).is_none_or(|one| one.may_hold("a", &|_| known.clone()));
        assert!(!may(col("start").gt(lit(5i64)), Known::Numbers(0, 5)));
        assert!(may(col("start").gt(lit(4i64)), Known::Numbers(0, 5)));
        assert!(!may(lit(5i64).lt(col("start")), Known::Numbers(0, 5)));
        assert!(!may(col("start").gt(lit(i64::MAX)), Known::Numbers(0, i128::from(i64::MAX))));
        assert!(!may(col("start").eq(lit(5i64)), Known::Null));
        assert!(may(col("start").not_eq(lit(5i64)), Known::Null), "statistics cannot tell");
        assert!(may(col("start").gt(lit(7i64)).or(col("name").like(lit("a%"))), Known::Numbers(0, 5)));
        assert!(!may(col("start").gt(lit(7i64)).and(col("name").like(lit("a%"))), Known::Numbers(0, 5)));
        assert!(!may(col("start").gt(lit(7i64)).or(col("start").lt(lit(-7i64))), Known::Numbers(0, 5)));
        let open = of(col("start").lt(lit(0i64)).or(col("start").is_null())).unwrap();
        let may_hold =
            |nulls| open.of_rows(&|_| Ok::<bool, ()>(nulls)).unwrap().may_hold("a", &|_| Known::Numbers(0, 5));
        assert!(may_hold(true) && !may_hold(false));
        assert!(!may(col("run").eq(lit("b")), Known::Unknown));
        assert!(may(col("run").in_list(vec![lit("b"), lit("a")], false), Known::Unknown));
        assert!(may(col("run").in_list(vec![lit("a")], true), Known::Unknown));
        let words = || Known::Words(b"w1".to_vec(), b"w3".to_vec());
        assert!(!may(col("location").eq(lit("w4")), words()));
        assert!(may(col("location").eq(lit("w22")), words()));
    }
}
