//! Rows that are being added to a table of a run: columns of equal length, in the order of the table.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};

use crate::cells::{Cells, Values};
use crate::tables::{Columns, Place, Table};

/// Rows for any table. Made from one of the structs of [`crate::tables`], or column by column where only the trace tells
/// which columns there are.
#[derive(Debug)]
pub struct Rows {
    pub(super) table: Table,
    /// In the order of the table's columns, `run` and identities included, which are never given.
    pub(super) columns: Vec<Values>,
    /// How many, where no column has a value for each.
    count: Option<usize>,
}

impl Rows {
    /// So many rows of NULLs.
    pub fn of(table: Table, count: usize) -> Rows {
        let columns = table.spec().columns.iter().map(|_| Values::Absent).collect();
        Rows { table, columns, count: Some(count) }
    }

    /// The same for a given number of rows, where every column has one value for all.
    pub fn repeated(self, count: usize) -> Rows {
        Rows { count: Some(count), ..self }
    }

    /// The table.
    pub fn table(&self) -> Table {
        self.table
    }

    /// How many rows there are; `None` when no column has a value for each row and the number was not given.
    pub fn count(&self) -> Option<usize> {
        self.count.or_else(|| self.columns.iter().find_map(Values::rows))
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(Values::memory).sum()
    }

    /// Gives a column its values.
    pub fn set<K>(&mut self, place: Place<K>, cells: impl Into<Cells<K>>) {
        self.set_named(place.name, cells.into().into_values());
    }

    /// Sets the values of a column given by its name. The builder checks whether they fit.
    pub fn set_named(&mut self, name: &'static str, values: Values) {
        let column = self.table.spec().columns.iter().position(|column| column.name == name);
        debug_assert!(column.is_some(), "{} has no column {name}", self.table);
        if let Some(column) = column {
            self.columns[column] = values;
        }
    }

    /// Whether a column is given.
    pub fn has<K>(&self, place: Place<K>) -> bool {
        let mut columns = self.table.spec().columns.iter().zip(&self.columns);
        columns.any(|(column, values)| column.name == place.name && !matches!(values, Values::Absent))
    }

    /// Applies `change` to every column that has a value per row; afterwards there are `count` rows.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn try_map<E>(
        &mut self,
        count: usize,
        mut change: impl FnMut(&ArrayRef) -> Result<ArrayRef, E>,
    ) -> Result<(), E> {
        self.count = Some(count);
        for values in &mut self.columns {
            match values {
                Values::Each(array) => *array = change(array)?,
                Values::Words(_, keys) => *keys = change(&(Arc::new(keys.clone()) as ArrayRef))?.as_primitive().clone(),
                Values::Absent | Values::Word(_) | Values::Same(_) => {}
            }
        }
        Ok(())
    }
}

impl<T: Columns> From<T> for Rows {
    fn from(rows: T) -> Rows {
        let given = rows.into_values();
        let own = T::TABLE.spec().columns.len() - given.len();
        let columns = std::iter::repeat_with(Values::default).take(own).chain(given).collect();
        Rows { table: T::TABLE, columns, count: None }
    }
}
