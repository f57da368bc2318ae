//! `extract_arg(arg_set_id, key)`: the value of an argument, by the id of its task.
//!
//! In Perfetto a column may hold values of any type; here a call has one type, chosen when it is planned: the narrowest
//! that holds all values of the key in the session (BIGINT, DOUBLE, text). So numbers are added and compared as numbers.
//! Cost: planning looks at all arguments once per key; a row costs a binary search and reading its arguments up to the key.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};

use super::LoadTasks;
use super::arguments::{Argument, ArgumentType, find};

/// The arguments of all tasks, by id.
pub(super) struct Arguments {
    load: Mutex<Option<LoadTasks>>,
    loaded: OnceLock<std::result::Result<Loaded, Arc<DataFusionError>>>,
    types: Mutex<HashMap<String, Option<ArgumentType>>>,
}

struct Loaded {
    /// Ids, ascending within and across batches, and the arguments beside them.
    batches: Vec<(Int64Array, StringArray)>,
    _memory: MemoryReservation,
}

impl Loaded {
    fn of(load: LoadTasks) -> Result<Loaded> {
        let (tasks, memory) = load()?;
        let columns = tasks
            .iter()
            .filter(|batch| batch.num_rows() > 0)
            .map(|batch| (batch["task"].as_primitive::<Int64Type>().clone(), batch["args"].as_string::<i32>().clone()));
        Ok(Loaded { batches: columns.collect(), _memory: memory })
    }

    fn get(&self, task: i64) -> Option<&str> {
        let (ids, args) =
            &self.batches[self.batches.partition_point(|(ids, _)| ids.value(0) <= task).checked_sub(1)?];
        let row = ids.values().binary_search(&task).ok()?;
        args.is_valid(row).then(|| args.value(row))
    }
}

impl Arguments {
    /// Of tasks that are loaded when the first argument is asked for.
    pub(super) fn new(load: LoadTasks) -> Arguments {
        Arguments { load: Mutex::new(Some(load)), loaded: OnceLock::new(), types: Mutex::default() }
    }

    fn loaded(&self) -> Result<&Loaded> {
        let loaded = self.loaded.get_or_init(|| {
            let load = self.load.lock().unwrap_or_else(PoisonError::into_inner).take();
            let load = load.ok_or_else(|| DataFusionError::Internal("the arguments are gone".to_owned()));
            load.and_then(Loaded::of).map_err(Arc::new)
        });
        loaded.as_ref().map_err(|error| DataFusionError::Shared(Arc::clone(error)))
    }

    /// The narrowest type for all values of a key; `None` without values.
    fn type_of(&self, key: &str) -> Result<Option<ArgumentType>> {
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = types.get(key) {
            return Ok(*known);
        }
        let Some(path) = path(key) else { return Ok(None) };
        // Most rows that do not have it need no look at their structure.
        let word = path.split(['.', '[', '"', '\\', '/']).max_by_key(|word| word.len()).unwrap_or_default();
        let finder = memchr::memmem::Finder::new(word);
        let mut found = None;
        for text in self.loaded()?.batches.iter().flat_map(|(_, args)| args.iter().flatten()) {
            if word.is_ascii() && !text.contains("\\u") && finder.find(text.as_bytes()).is_none() {
                continue;
            }
            found = found.max(find(text, path).map(|value| value.argument_type()));
            if found == Some(ArgumentType::Text) {
                break;
            }
        }
        types.insert(key.to_owned(), found);
        Ok(found)
    }
}

/// The path below a task's arguments: Perfetto files those of a JSON trace under `args`, others under `debug`.
fn path(key: &str) -> Option<&str> {
    key.strip_prefix("args.").or_else(|| key.strip_prefix("debug."))
}

/// The function.
pub(super) struct ExtractArg {
    arguments: Arc<Arguments>,
    signature: Signature,
}

impl ExtractArg {
    pub(super) fn new(arguments: Arguments) -> ExtractArg {
        let exact = |key| TypeSignature::Exact(vec![DataType::Int64, key]);
        let signature = vec![exact(DataType::Utf8), exact(DataType::Utf8View)];
        ExtractArg { arguments: Arc::new(arguments), signature: Signature::one_of(signature, Volatility::Immutable) }
    }
}

impl fmt::Debug for ExtractArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExtractArg")
    }
}

impl PartialEq for ExtractArg {
    fn eq(&self, other: &ExtractArg) -> bool {
        Arc::ptr_eq(&self.arguments, &other.arguments)
    }
}

impl Eq for ExtractArg {}

impl Hash for ExtractArg {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.arguments).hash(state);
    }
}

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Text", description: None },
        "An argument of a slice, by the id of its arguments, as PerfettoSQL has it; `args` of our own tables is JSON, for which \
         `args->>'key'` does the same. A key within an object is written `args.a.b`, an element of a list `args.a[0]`.\n\n\
         Rows: one per row. Units: those of the argument. Its type is the narrowest that holds all values of the key in \
         the session: \
         BIGINT, DOUBLE or text; text where the key is no constant. NULL where the slice has no such argument, and for NULL.\n\n\
         Errors: a key that is no text. Cost: all arguments of the session once per key, then a binary search per row.\n\n\
         Source: `EXTRACT_ARG` of Perfetto's trace processor. `ancestor_slice(id)` and `descendant_slice(id)` are relations of the same dialect.",
        "extract_arg(arg_set_id, key)",
    )
    .with_argument("arg_set_id", "The column `arg_set_id` of `slice` (BIGINT).")
    .with_argument("key", "The key (text), with `args.` or `debug.` in front.")
    .build()
});

impl ScalarUDFImpl for ExtractArg {
    fn name(&self) -> &str {
        "extract_arg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal("the type depends on the key".to_owned()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let key = args.scalar_arguments.get(1).copied().flatten().and_then(text);
        let data_type = match key.map(|key| self.arguments.type_of(key)).transpose()?.flatten() {
            Some(ArgumentType::Integer) => DataType::Int64,
            Some(ArgumentType::Real) => DataType::Float64,
            // A key that is no constant may have values of any type.
            Some(ArgumentType::Text) | None => DataType::Utf8,
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let data_type = args.return_field.data_type().clone();
        let [ids, keys] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("extract_arg takes two arguments".to_owned()));
        };
        let ids = ids.to_array(args.number_rows)?;
        let ids = ids.as_primitive::<Int64Type>();
        let arguments = self.arguments.loaded()?;
        let values: Vec<Option<Argument>> = match keys {
            ColumnarValue::Scalar(key) => {
                let path = text(key).and_then(path);
                ids.iter().map(|id| find(arguments.get(id?)?, path?)).collect()
            }
            ColumnarValue::Array(keys) => {
                let keys = cast(keys, &DataType::Utf8)?;
                let keys = keys.as_string::<i32>();
                ids.iter().zip(keys).map(|(id, key)| find(arguments.get(id?)?, path(key?)?)).collect()
            }
        };
        Ok(ColumnarValue::Array(array(&values, &data_type)))
    }
}

fn text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

fn array(values: &[Option<Argument>], data_type: &DataType) -> ArrayRef {
    let values = values.iter().map(Option::as_ref);
    match data_type {
        DataType::Int64 => Arc::new(Int64Array::from_iter(values.map(|value| match value? {
            Argument::Integer(value) => Some(*value),
            _ => None,
        }))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(values.map(|value| match value? {
            Argument::Integer(value) => Some(*value as f64),
            Argument::Real(value) => Some(*value),
            Argument::Text(_) => None,
        }))),
        _ => Arc::new(StringArray::from_iter(values.map(|value| value.map(Argument::to_string)))),
    }
}
