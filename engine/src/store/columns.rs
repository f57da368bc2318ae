//! Columns: which columns of a table the files of a store have.
//!
//! They are the same, except for two of `tasks` that can nearly always be computed from others:
//!
//! | in the file | NULL | the mark | any other value |
//! | --- | --- | --- | --- |
//! | `other_finish` | `finish` is `start + duration` (NULL where one of these is) | `finish` is NULL, and the sum is not: -2^63 | `finish` |
//! | `other_stack_parent` | `stack_parent` is `parent` | `stack_parent` is NULL, and `parent` is not: -1 | `stack_parent` |
//!
//! Times lie within ±2^62 and positions are not negative, so that no value is a mark.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::kernels::numeric::add;
use datafusion::arrow::datatypes::{Field, Int64Type, Schema, SchemaRef};

use super::conditions::Known;
use crate::tables::Table;

/// A column of `tasks` that others tell, where no value of its own stands beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Its name in the file.
    pub(super) name: &'static str,
    /// The value that stands for NULL in the file.
    pub(super) mark: i64,
    /// The sum of these, or the value of the only one.
    pub(super) of: &'static [&'static str],
}

const FINISH: Told = Told { name: "other_finish", mark: i64::MIN, of: &["start", "duration"] };
const STACK_PARENT: Told = Told { name: "other_stack_parent", mark: -1, of: &["parent"] };

/// How a column is told by others; `None` for those that stand in the file as they are.
pub(super) fn told(table: Table, column: &str) -> Option<Told> {
    match (table, column) {
        (Table::Tasks, "finish") => Some(FINISH),
        (Table::Tasks, "stack_parent") => Some(STACK_PARENT),
        _ => None,
    }
}

/// The place of a column in a table and in its files.
pub(super) fn place(table: Table, name: &str) -> usize {
    table.spec().columns.iter().position(|column| column.name == name).unwrap_or_default()
}

/// The name of a column in the files.
pub(super) fn file_name(table: Table, column: &'static str) -> &'static str {
    told(table, column).map_or(column, |told| told.name)
}

/// The columns of a table's files: those of the session's table, without what only sessions know of them.
pub(super) fn file_schema(table: Table) -> SchemaRef {
    let schema = table.schema();
    let field = |(field, column): (&Arc<Field>, &crate::tables::Column)| {
        let field = field.as_ref().clone().with_metadata(Default::default());
        field.with_name(file_name(table, column.name))
    };
    Arc::new(Schema::new(schema.fields().iter().zip(table.spec().columns).map(field).collect::<Vec<_>>()))
}

/// The columns of the file that tell one of the table.
pub(super) fn needed(table: Table, column: usize, columns: &mut Vec<usize>) {
    columns.push(column);
    if let Some(told) = told(table, table.spec().columns[column].name) {
        columns.extend(told.of.iter().map(|name| place(table, name)));
    }
}

impl Told {
    /// The value that others tell of a row; an error where their sum is beyond all numbers.
    fn value(of: &[&Int64Array], row: usize) -> Result<Option<i64>, ()> {
        let known = |array: &Int64Array| array.is_valid(row).then(|| array.value(row));
        match of {
            [one] => Ok(known(one)),
            [one, other] => known(one).zip(known(other)).map(|(a, b)| a.checked_add(b).ok_or(())).transpose(),
            _ => Ok(None),
        }
    }

    /// Whether all values are those that others tell, as far as that is quickly seen.
    fn are_told(values: &Int64Array, of: &[&Int64Array]) -> bool {
        match of {
            [one] => values == *one,
            [one, other] if [values, one, other].iter().all(|array| array.null_count() == 0) => {
                let sums = one.values().iter().zip(other.values()).map(|(one, other)| one.checked_add(*other));
                values.values().iter().zip(sums).all(|(value, sum)| sum == Some(*value))
            }
            _ => false,
        }
    }

    /// What stands in the file for these values.
    pub(super) fn stored(self, values: &Int64Array, of: &[&Int64Array]) -> Int64Array {
        if Told::are_told(values, of) {
            return Int64Array::new_null(values.len());
        }
        let stored = |row: usize| {
            let value = values.is_valid(row).then(|| values.value(row));
            match Told::value(of, row) {
                Ok(told) if told == value => None,
                _ => Some(value.unwrap_or(self.mark)),
            }
        };
        (0..values.len()).map(stored).collect()
    }

    /// The values, of what stands in the file.
    pub(super) fn read(self, stored: &ArrayRef, of: &[&ArrayRef]) -> Result<Int64Array, ()> {
        let stored = stored.as_primitive::<Int64Type>();
        let of: Vec<&Int64Array> = of.iter().map(|array| array.as_primitive::<Int64Type>()).collect();
        // Mostly nothing stands there.
        match of[..] {
            [one] if stored.null_count() == stored.len() => return Ok(one.clone()),
            [one, other] if stored.null_count() == stored.len() => {
                return add(one, other).map(|sums| sums.as_primitive().clone()).map_err(|_| ());
            }
            _ => {}
        }
        let value = |row: usize| match stored.is_valid(row).then(|| stored.value(row)) {
            None => Told::value(&of, row),
            Some(mark) if mark == self.mark => Ok(None),
            Some(value) => Ok(Some(value)),
        };
        (0..stored.len()).map(value).collect()
    }

    /// What is known of the values.
    pub(super) fn known(self, table: Table, of_file: &impl Fn(usize) -> Known) -> Known {
        let told = self.of.iter().map(|name| of_file(place(table, name))).reduce(Known::plus);
        // A mark among the others only makes the range wider.
        told.unwrap_or(Known::Unknown).or(of_file(place(table, self.column())))
    }

    fn column(self) -> &'static str {
        if self == FINISH { "finish" } else { "stack_parent" }
    }

    /// The value in SQL, for views of the files.
    pub(super) fn sql(self) -> String {
        let (name, mark, of) = (self.name, self.mark, self.of.join(" + "));
        let column = self.column();
        // The least number is no literal of its own in SQL.
        let mark = if mark == i64::MIN { format!("{} - 1", i64::MIN + 1) } else { mark.to_string() };
        format!("CASE WHEN {name} IS NULL THEN {of} WHEN {name} = {mark} THEN NULL ELSE {name} END AS {column}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn few() -> impl Strategy<Value = Vec<Option<i64>>> {
        prop::collection::vec(prop::option::of(-2i64..3), 40)
    }

    proptest! {
        #[test]
        fn values_come_back(values in few(), one in few(), other in few()) {
            let [values, one, other] = [values, one, other].map(Int64Array::from);
            for (told, of) in [(FINISH, vec![&one, &other]), (STACK_PARENT, vec![&one])] {
                // Positions are not negative.
                let of_column = |array: &Int64Array| match told == FINISH {
                    true => array.clone(),
                    false => array.iter().map(|value| value.map(|value| value + 2)).collect(),
                };
                let (values, of): (_, Vec<Int64Array>) = (of_column(&values), of.into_iter().map(of_column).collect());
                let stored: ArrayRef = Arc::new(told.stored(&values, &of.iter().collect::<Vec<_>>()));
                let of: Vec<ArrayRef> = of.into_iter().map(|array| Arc::new(array) as ArrayRef).collect();
                prop_assert_eq!(told.read(&stored, &of.iter().collect::<Vec<_>>()), Ok(values));
            }
        }
    }

    #[test]
    fn what_others_tell_is_not_stored() {
        let numbers = |numbers: [Option<i64>; 4]| Int64Array::from(numbers.to_vec());
        let start = numbers([Some(5), None, Some(7), Some(i64::MAX)]);
        let duration = numbers([Some(2), Some(1), None, Some(1)]);
        let finish = numbers([Some(7), None, None, None]);
        assert_eq!(FINISH.stored(&finish, &[&start, &duration]), numbers([None, None, None, Some(i64::MIN)]));
        let arrays: Vec<ArrayRef> = vec![Arc::new(start), Arc::new(duration)];
        let stored: ArrayRef = Arc::new(numbers([None; 4]));
        assert_eq!(FINISH.read(&stored, &arrays.iter().collect::<Vec<_>>()), Err(()), "beyond all numbers");
    }
}
