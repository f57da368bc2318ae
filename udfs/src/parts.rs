//! A limit on the size of types that `struct(x, x)`, `map(…)` and `arrays_zip(…)` make.
//!
//! The type of `struct(x, x)` is twice as large as that of `x`, so thirty queries of a WITH, each made of the one before, have a type of 2^30
//! parts, and planning looks at all of them. [`within_parts`] wraps such a function: everything is delegated, but a type of more than `MOST`
//! parts is an error.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// Fields of a type, those within others among them.
const MOST: usize = 4096;

/// The same function, whose answers have a type of few parts.
pub fn within_parts(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(WithinParts { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithinParts {
    function: Arc<ScalarUDF>,
}

impl WithinParts {
    fn check(&self, data_type: &DataType) -> Result<()> {
        if count(data_type, 0) > MOST {
            return plan_err!(
                "{} makes a type of more than {MOST} fields, those within others among them",
                self.name()
            );
        }
        Ok(())
    }
}

/// How many fields a type has beside `counted` others; no more are looked at than it takes to know that they are too many.
fn count(data_type: &DataType, counted: usize) -> usize {
    let within = |fields: &[FieldRef]| {
        fields.iter().fold(counted, |all, field| if all > MOST { all } else { count(field.data_type(), all + 1) })
    };
    match data_type {
        DataType::Struct(fields) => within(fields),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => within(std::slice::from_ref(field)),
        _ => counted,
    }
}

impl ScalarUDFImpl for WithinParts {
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.function.return_field_from_args(args)?;
        self.check(field.data_type())?;
        Ok(field)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let data_type = self.function.return_type(types)?;
        self.check(&data_type)?;
        Ok(data_type)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.function.invoke_with_args(args)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn all_fields_are_counted_and_no_more_than_needed() {
        let twice = |of: &DataType| {
            let field = |name: &str| Field::new(name, of.clone(), true);
            DataType::Struct(vec![field("a"), field("b")].into())
        };
        let mut data_type = DataType::Int64;
        for level in 0..40 {
            assert_eq!(count(&data_type, 0).min(MOST + 1), ((1_usize << (level + 1)) - 2).min(MOST + 1));
            data_type = twice(&data_type);
        }
        assert_eq!(count(&DataType::new_list(twice(&DataType::Utf8), true), 0), 3);
    }
}
