//! Arguments as Perfetto flattens them: one value per path.
//!
//! ```text
//! {"grid":[2,1],"a":{"b":"x"}}      args.grid[0] = 2, args.grid[1] = 1, args.a.b = 'x'
//! ```
//! A key may itself contain dots; a path then has several readings, and the first that exists is used.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value at a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    /// A whole number, or a truth value as 0 or 1.
    Integer(i64),
    Real(f64),
    Text(String),
}

/// The least type that holds all values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ArgumentType {
    Integer,
    Real,
    Text,
}

impl Argument {
    /// `None`: null, an object, an array, or no JSON.
    fn of(json: &str) -> Option<Argument> {
        match json.as_bytes().first()? {
            b'{' | b'[' | b'n' => None,
            b't' => Some(Argument::Integer(1)),
            b'f' => Some(Argument::Integer(0)),
            b'"' => serde_json::from_str(json).ok().map(Argument::Text),
            _ => Some(match json.parse() {
                Ok(number) => Argument::Integer(number),
                // A whole number that BIGINT does not hold stays exact, as text.
                Err(_) if !json.contains(['.', 'e', 'E']) => Argument::Text(json.to_owned()),
                Err(_) => Argument::Real(json.parse().ok()?),
            }),
        }
    }

    pub(super) fn argument_type(&self) -> ArgumentType {
        match self {
            Argument::Integer(_) => ArgumentType::Integer,
            Argument::Real(_) => ArgumentType::Real,
            Argument::Text(_) => ArgumentType::Text,
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Integer(value) => value.fmt(f),
            Argument::Real(value) => value.fmt(f),
            Argument::Text(value) => value.fmt(f),
        }
    }
}

/// The value at a path such as `grid[0]` or `a.b`.
pub(super) fn find(json: &str, path: &str) -> Option<Argument> {
    if path.is_empty() {
        return Argument::of(json);
    }
    if let Some((place, rest)) = path.strip_prefix('[').and_then(|path| path.split_once(']')) {
        let element = elements(json).into_iter().nth(place.parse().ok()?)?;
        return find(element.get(), rest.strip_prefix('.').unwrap_or(rest));
    }
    members(json).iter().find_map(|(key, value)| {
        let rest = path.strip_prefix(key.as_ref())?;
        match rest.strip_prefix('.') {
            Some(below) => find(value.get(), below),
            None if rest.is_empty() || rest.starts_with('[') => find(value.get(), rest),
            None => None,
        }
    })
}

/// Hands every value to `take`, with its path; nothing of what is no JSON. One walk over the text, however deep it is.
fn flatten(json: &str, path: &str, take: &mut impl FnMut(&str, Argument)) {
    if serde_json::from_str::<&RawValue>(json).is_err() {
        return;
    }
    let bytes = json.as_bytes();
    let blank = |at: &mut usize| *at += bytes[*at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    // For each open object or array: how long its own path is, and the place of the element that is read.
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let mut path = path.to_owned();
    let mut at = 0;
    loop {
        blank(&mut at);
        match bytes.get(at) {
            None => return,
            Some(b'{') => open.push((path.len(), None)),
            Some(b'[') => {
                open.push((path.len(), Some(0)));
                path.push_str("[0]");
            }
            Some(b']' | b'}') => {
                let (length, _) = open.pop().unwrap_or_default();
                path.truncate(length);
            }
            Some(b',') => {
                if let Some((length, Some(place))) = open.last_mut() {
                    *place += 1;
                    path.truncate(*length);
                    path.push_str(&format!("[{place}]"));
                }
            }
            Some(_) => {
                let end = at + scalar_length(&bytes[at..]);
                let text = &json[at..end];
                let mut next = end;
                blank(&mut next);
                at = end - 1;
                if let (Some((length, None)), Some(b':')) = (open.last(), bytes.get(next)) {
                    path.truncate(*length);
                    path.push('.');
                    path.push_str(&serde_json::from_str::<Key<'_>>(text).map(|key| key.0).unwrap_or_default());
                    at = next;
                } else if let Some(value) = Argument::of(text) {
                    take(&path, value);
                }
            }
        }
        at += 1;
    }
}

/// The bytes of the text, number or word with which valid JSON begins.
fn scalar_length(json: &[u8]) -> usize {
    if json[0] != b'"' {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b':');
        return json.iter().position(ends).unwrap_or(json.len());
    }
    let mut escaped = false;
    for (index, byte) in json.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    json.len()
}

/// The members of an object, in the order of the text; empty for any other value.
fn members(json: &str) -> Vec<(Cow<'_, str>, &RawValue)> {
    struct Members;
    impl<'j> Visitor<'j> for Members {
        type Value = Vec<(Cow<'j, str>, &'j RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((Key(key), value)) = map.next_entry()? {
                members.push((key, value));
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(json).deserialize_map(Members).unwrap_or_default()
}

/// A key that is borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'j>(#[serde(borrow)] Cow<'j, str>);

/// The elements of an array; empty for any other value.
fn elements(json: &str) -> Vec<&RawValue> {
    struct Elements;
    impl<'j> Visitor<'j> for Elements {
        type Value = Vec<&'j RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'j>>(self, mut sequence: A) -> std::result::Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = sequence.next_element()? {
                elements.push(element);
            }
            Ok(elements)
        }
    }
    serde_json::Deserializer::from_str(json).deserialize_seq(Elements).unwrap_or_default()
}

/// `perfetto_arguments(args)`: the flattened arguments of a row, for the view `args`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FlatArguments(Signature);

impl FlatArguments {
    pub(super) fn new() -> FlatArguments {
        FlatArguments(Signature::string(1, Volatility::Immutable))
    }
}

fn fields() -> Fields {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Fields::from(vec![
        field("key", DataType::Utf8),
        field("int_value", DataType::Int64),
        field("real_value", DataType::Float64),
        field("string_value", DataType::Utf8),
        field("display_value", DataType::Utf8),
    ])
}

impl ScalarUDFImpl for FlatArguments {
    fn name(&self) -> &str {
        "perfetto_arguments"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Struct(fields()), true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = datafusion::arrow::compute::cast(&texts[0], &DataType::Utf8)?;
        let mut rows = ListBuilder::new(StructBuilder::from_fields(fields(), 0));
        for text in texts.as_string::<i32>() {
            flatten(text.unwrap_or("{}"), "args", &mut |path, value| append(rows.values(), path, &value));
            rows.append(text.is_some());
        }
        Ok(ColumnarValue::Array(Arc::new(rows.finish()) as ArrayRef))
    }
}

fn append(row: &mut StructBuilder, path: &str, value: &Argument) {
    let (integer, real, text) = match value {
        Argument::Integer(value) => (Some(*value), None, None),
        Argument::Real(value) => (None, Some(*value), None),
        Argument::Text(value) => (None, None, Some(value.as_str())),
    };
    let display = value.to_string();
    for (place, cell) in [(0, Some(path)), (3, text), (4, Some(display.as_str()))] {
        if let Some(builder) = row.field_builder::<StringBuilder>(place) {
            builder.append_option(cell);
        }
    }
    if let Some(builder) = row.field_builder::<Int64Builder>(1) {
        builder.append_option(integer);
    }
    if let Some(builder) = row.field_builder::<Float64Builder>(2) {
        builder.append_option(real);
    }
    row.append(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: &str = r#"{"grid":[2,[1,"x"]],"a":{"b":0.5,"c d":true},"a.b":"dotted","02.step":1,"big":18446744073709551617,"none":null,"\u0061e":"\n"}"#;

    #[test]
    fn paths_lead_to_values() {
        let text = |text: &str| Some(Argument::Text(text.to_owned()));
        for (path, expected) in [
            ("grid[0]", Some(Argument::Integer(2))),
            ("grid[1][1]", text("x")),
            ("grid[2]", None),
            ("grid", None),
            ("a.b", Some(Argument::Real(0.5))),
            ("a.c d", Some(Argument::Integer(1))),
            ("02.step", Some(Argument::Integer(1))),
            ("big", text("18446744073709551617")),
            ("none", None),
            ("ae", text("\n")),
            ("missing", None),
        ] {
            assert_eq!(find(ARGS, path), expected, "{path}");
        }
        assert_eq!(find("no json", "a"), None);
    }

    #[test]
    fn flattening_walks_over_any_depth() {
        let flat = |json: &str| {
            let mut seen = Vec::new();
            flatten(json, "args", &mut |path, value| seen.push(format!("{path}={value}")));
            seen.join(" ")
        };
        let odd = r#" { "a" : [ ] , "b" : { } , "c" : [ { "d" : "},[" } , "\"" ] } "#;
        assert_eq!(flat(odd), r#"args.c[0].d=},[ args.c[1]=""#);
        assert_eq!(flat("[1, [2, 3], 4]"), "args[0]=1 args[1][0]=2 args[1][1]=3 args[2]=4");
        assert_eq!(flat("7"), "args=7");
        assert_eq!(flat(r#"{"a":1,"b":}"#), "");
        let depth = 200_000;
        let deep = format!("{}1{}", r#"{"a":["#.repeat(depth), "]}".repeat(depth));
        assert_eq!(flat(&deep), format!("args{}=1", ".a[0]".repeat(depth)));
    }

    #[test]
    fn flattening_gives_every_value_once() {
        let mut seen = Vec::new();
        flatten(ARGS, "args", &mut |path, value| seen.push(format!("{path}={value}")));
        assert_eq!(
            seen.join(" "),
            "args.grid[0]=2 args.grid[1][0]=1 args.grid[1][1]=x args.a.b=0.5 args.a.c d=1 args.a.b=dotted args.02.step=1 args.big=18446744073709551617 args.ae=\n"
        );
    }
}
