//! DataFusion's messages in the words of users: SQL's names of types, literals as they were typed, no lists of internals.
//!
//! A message is recognised by a phrase of it; one that is not known stays, with its types and literals translated.

use crate::sql::set_operations::BRANCH;
use crate::sql::time_text::NONE;

/// What a message of planning or running means, and what to try.
pub(super) fn in_words(text: &str) -> (String, Option<String>) {
    let text = typed_literals(&text.replace("Error during planning: ", "").replace("Execution error: ", ""));
    let known = unfit_arguments(&text)
        .or_else(|| not_grouped(&text))
        .or_else(|| named_twice(&text))
        .or_else(|| wrong_positions(&text))
        .or_else(|| wrong_types(&text))
        .or_else(|| beyond_the_planner(&text))
        .or_else(|| ticks_and_interval(&text))
        .or_else(|| beyond_digits(&text))
        .or_else(|| wrong_values(&text));
    let (message, hint) = known.unwrap_or_else(|| (without_kind(&text).to_owned(), None));
    (sql_types(message.trim().trim_end_matches('.')), hint.map(|hint| sql_types(&hint)))
}

/// A message without the word that Arrow has for its kind.
fn without_kind(text: &str) -> &str {
    let kinds = ["Parser error: ", "Compute error: ", "Invalid argument error: ", "Cast error: "];
    kinds.into_iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(text)
}

type Worded = Option<(String, Option<String>)>;

/// A function that does not take what it was given.
fn unfit_arguments(text: &str) -> Worded {
    // Our functions say it themselves.
    if let Some((_, rest)) = text.split_once("user-defined coercion failed with: ") {
        let message = rest.split(". No function matches").next().unwrap_or(rest);
        let is_of_times =
            [" takes numbers, found Interval", " takes numbers, found Duration"].iter().any(|of| message.contains(of));
        let hint = is_of_times.then(|| "`extract(epoch FROM x)` is a number of seconds".to_owned());
        return Some((message.to_owned(), hint));
    }
    let call = between(text, "given name and argument types '", "'")?;
    let (name, types) = call.split_once('(')?;
    let types = types.strip_suffix(')').unwrap_or(types);
    let found = if types.is_empty() { "no arguments".to_owned() } else { types.to_owned() };
    let candidates: Vec<&str> = text
        .split_once("Candidate functions:")
        .map(|(_, list)| list.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
        .unwrap_or_default();
    let of_ticks = super::other_dialects::of_ticks(name).filter(|_| types.contains("BIGINT"));
    let hint = of_ticks.map(str::to_owned).or_else(|| (!candidates.is_empty()).then(|| overloads(&candidates)));
    Some((format!("`{name}` does not take {found}"), hint))
}

/// A few of the ways to call a function: those in the types that people write first.
fn overloads(candidates: &[&str]) -> String {
    const SHOWN: usize = 6;
    let mut shown = candidates.to_vec();
    // `Timestamp(ns, "+TZ")`, `Interval(DayTime)`: types that have no word in SQL.
    shown.sort_by_key(|candidate| candidate.matches('(').count() > 1);
    let more = match shown.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    shown.truncate(SHOWN);
    format!("there is {}{more}", shown.join(", "))
}

fn not_grouped(text: &str) -> Worded {
    if let Some(expression) = between(text, "HAVING clause references: ", " must appear in the GROUP BY") {
        let message =
            format!("HAVING has `{expression}`, which is neither in GROUP BY nor inside of an aggregate function");
        return Some((message, Some("a condition on rows belongs into WHERE".to_owned())));
    }
    if text.contains("must appear in the GROUP BY clause") {
        let column = between(text, "column \"", "\"")?;
        let bare = column.rsplit('.').next().unwrap_or(column);
        let message = format!("`{column}` is neither in GROUP BY nor inside of an aggregate function");
        return Some((message, Some(format!("add it to GROUP BY, or take one of its values: `min({bare})`"))));
    }
    let where_aggregate = text.contains("Aggregate functions are not allowed in the WHERE clause");
    where_aggregate.then(|| {
        let hint = "a condition on groups belongs into HAVING, behind GROUP BY".to_owned();
        ("WHERE decides about rows before they are grouped, so it has no aggregate functions".to_owned(), Some(hint))
    })
}

/// A name that stands for two things.
fn named_twice(text: &str) -> Worded {
    if let Some(names) = between(text, "require unique expression names but the expression ", " have the same name") {
        let name = between(names, "\"", "\" at position")?;
        let hint = format!("call one of them otherwise: `{name} AS another_name`");
        return Some((format!("SELECT has `{name}` twice"), Some(hint)));
    }
    let name = between(text, "able '", "' already exists")?;
    let hint = "choose another name; a view is replaced by `CREATE OR REPLACE VIEW`".to_owned();
    Some((format!("there is a table `{name}` already"), Some(hint)))
}

/// `ORDER BY 99`: columns of SELECT that are told by their positions.
fn wrong_positions(text: &str) -> Worded {
    let of = |clause: &str, position: &str, columns: &str| {
        let columns = columns.trim_end_matches('.');
        let plural = if columns == "1" { "column" } else { "columns" };
        let hint = "positions count the columns of SELECT from 1".to_owned();
        Some((format!("{clause} asks for column `{position}`, and SELECT has {columns} {plural}"), Some(hint)))
    };
    let bounds = text.split_once("Order by column out of bounds, specified: ").map(|(_, bounds)| bounds);
    if let Some((position, columns)) = bounds.and_then(|bounds| bounds.split_once(", max: ")) {
        return of("ORDER BY", position, columns);
    }
    let position = between(text, "Cannot find column with position ", " in SELECT clause")?;
    of("GROUP BY", position, text.rsplit_once(" to ")?.1)
}

/// Right SQL that DataFusion 55 cannot plan; each has another form that it can.
fn beyond_the_planner(text: &str) -> Worded {
    if text.contains("does not satisfy order requirements") {
        let hint =
            "give what it sorts by a name in SELECT, and sort by that: `SELECT …, abs(a % b) AS key … ORDER BY key`";
        return Some(("the planner does not see that this order is one".to_owned(), Some(hint.to_owned())));
    }
    if text.contains("unique expression names") && text.contains("__correlated_sq_") {
        let hint = "call the column another name there: `kind IN (SELECT kind AS other FROM (… UNION ALL …)) OR …`";
        return Some((
            "the planner mixes up columns of one name in a subquery of IN".to_owned(),
            Some(hint.to_owned()),
        ));
    }
    None
}

fn wrong_types(text: &str) -> Worded {
    if let Some(expression) = between(text, "Cannot coerce arithmetic expression ", " to valid types") {
        let hint = "`CAST(x AS BIGINT)` makes a number of a text that is one".to_owned();
        return Some((format!("`{}` cannot be computed", sql_types(expression)), Some(hint)));
    }
    if let Some(predicate) = between(text, "non-boolean predicate '", "'") {
        let (_, found) = text.rsplit_once(" returning ")?;
        let message = format!("WHERE takes true or false, and `{predicate}` is {found}");
        return Some((message, Some(format!("compare it: `{predicate} = …`"))));
    }
    if text.contains(" makes a type of more than ") {
        let hint =
            "a struct of structs grows with each step: keep their fields as columns, or only those that are needed";
        return Some((text.to_owned(), Some(hint.to_owned())));
    }
    if let Some((_, found)) = text.split_once("Expected LIMIT to be an integer or null, but got ") {
        return Some((format!("LIMIT takes a whole number, not {found}"), None));
    }
    for (clause, before) in [("LIMIT", "LIMIT must be >= 0, '"), ("OFFSET", "OFFSET must be >=0, '")] {
        if let Some(number) = between(text, before, "' was provided") {
            return Some((format!("{clause} takes no number below 0, and {number} is one"), None));
        }
    }
    if text.contains("queries have different number of columns") {
        let clause = text.split(' ').next()?;
        return Some((format!("the two sides of {clause} have different numbers of columns"), None));
    }
    json_key(text).or_else(|| wrong_operands(text)).or_else(|| no_common_type(text))
}

/// Operators between types that they do not take.
fn wrong_operands(text: &str) -> Worded {
    if let Some(types) = between(text, "There isn't a common type to coerce ", " in LIKE expression") {
        let (left, right) = types.split_once(" and ")?;
        let hint = "a number is compared as one, `x = 5`, or as a text: `CAST(x AS VARCHAR) LIKE '5%'`".to_owned();
        return Some((format!("LIKE compares texts, not {left} with {right}"), Some(hint)));
    }
    if let Some(types) = text.strip_prefix("Cannot infer common argument type for logical boolean operation ") {
        let hint = "a number is compared to be true or false: `x <> 0`".to_owned();
        return Some((format!("`{types}`: AND and OR take true or false"), Some(hint)));
    }
    if let Some(types) = text.strip_prefix("Cannot infer common string type for string concat operation ") {
        let hint = "one of them must be a text: `CAST(x AS VARCHAR) || y`, or `concat(x, y)`".to_owned();
        return Some((format!("`{types}`: || puts texts together"), Some(hint)));
    }
    if let Some((_, found)) = text.split_once("Cannot access field at argument 1: type ") {
        let found = found.split(" is not ").next()?;
        let hint = "a member of JSON is `args->>'key'` as text, `args->'key'` as JSON".to_owned();
        return Some((format!("`x['key']` and `x.key` take a member of a struct, and {found} is none"), Some(hint)));
    }
    let distinct = text.strip_prefix("For SELECT DISTINCT, ORDER BY expressions ")?;
    let key = distinct.strip_suffix(" must appear in select list").unwrap_or(distinct);
    let hint = format!("add it to SELECT, or group: `SELECT x … GROUP BY x ORDER BY min({key})`");
    Some((format!("SELECT DISTINCT has no `{key}` that ORDER BY could sort by"), Some(hint)))
}

/// Values of types that nothing brings together.
fn no_common_type(text: &str) -> Worded {
    // Times of traces are numbers of ticks.
    let hint = match text.contains("Interval(") && text.contains("Int64") {
        true => TICKS_FOR_INTERVALS,
        false => "`CAST(x AS …)` makes one type of both",
    };
    let message = if let Some(types) = text.strip_prefix("Cannot infer common argument type for comparison operation ")
    {
        format!("`{types}`: these do not compare")
    } else if let Some(types) = between(text, "Failed to coerce types ", " in BETWEEN expression") {
        format!("BETWEEN does not compare {types}")
    } else if let Some((value, list)) =
        text.strip_prefix("Can not find compatible types to compare ").and_then(|types| types.split_once(" with "))
    {
        format!("IN does not compare {value} with {list}")
    } else if let Some(rest) = text.strip_prefix("Incompatible inputs for Union: Previous inputs were of type ") {
        let (types, column) = rest.split_once(" on column '")?;
        let (before, found) = types.split_once(", but got incompatible type ")?;
        let column = column.trim_end_matches(['.', '\'']);
        let which = match column.strip_prefix(BRANCH).and_then(|at| at.parse::<usize>().ok()) {
            Some(at) => format!("column {}", at + 1),
            None => format!("`{column}`"),
        };
        format!("{which} of UNION is {before} in one branch and {found} in another")
    } else {
        let types = between(text, "Failed to coerce then (", ") to common types in CASE WHEN expression")?;
        let (then, otherwise) = types.split_once(") and else (")?;
        format!("CASE has {then} behind THEN and {otherwise} behind ELSE")
    };
    Some((message, Some(hint.to_owned())))
}

/// `args->>('key' + 1)`: what binds tighter than the operator was taken for its key.
fn json_key(text: &str) -> Worded {
    let (_, rest) = text.split_once("Unexpected argument type to 'json_")?;
    let (function, rest) = rest.split_once("' at position ")?;
    let (_, found) = rest.split_once(", expected string or int, got ")?;
    let operator = if function == "as_text" { "->>" } else { "->" };
    let found = sql_types(found.trim_end_matches('.'));
    let hint = "`+`, `-`, `*` and `::` bind tighter: write `(args->>'key')::BIGINT + 1`".to_owned();
    Some((format!("`{operator}` takes a key or a position, not {found}"), Some(hint)))
}

/// How SQL says `5ms`.
fn time_of(value: &str) -> Option<String> {
    if value.trim_start_matches(['+', '-']).eq_ignore_ascii_case("infinity") {
        return Some(
            "times reach from 1677 to 2262, and none is infinite: NULL stands for one that is not known".to_owned(),
        );
    }
    if value.starts_with("24:00") {
        return Some("a TIME lies before 24:00; behind a date it is the next day".to_owned());
    }
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &value[..value.len() - unit.len()];
    let is_time = !number.is_empty() && is_unit(unit.trim_start());
    is_time.then(|| format!("a time is written `{}({number})`", unit.trim_start()))
}

/// Whether a function of this name makes ticks of a number.
pub(super) fn is_unit(word: &str) -> bool {
    ["us", "ms", "s"].contains(&word)
}

/// A number that is too large for the digits of its type.
fn beyond_digits(text: &str) -> Worded {
    let hint = "those behind the point count: `DECIMAL(38, 2)` has 36 digits before it; `TRY_CAST(x AS …)` makes NULL of what does not fit";
    for (phrase, bound) in
        [(" is too large to store in a Decimal", "Max is "), (" is too small to store in a Decimal", "Min is ")]
    {
        if let Some((before, rest)) = text.split_once(phrase) {
            let number = before.rsplit(' ').next()?;
            let (_, bound) = rest.split_once(bound)?;
            return Some((format!("{number} does not fit a DECIMAL whose bound is {bound}"), Some(hint.to_owned())));
        }
    }
    if let Some(pair) = between(text, "Invalid argument error: Output scale of ", " would exceed max scale of 38") {
        let hint = "a product has as many as both together; `CAST(x AS DECIMAL(38, 18))` has fewer";
        return Some((format!("more than 38 digits behind the point in {}", sql_types(pair)), Some(hint.to_owned())));
    }
    if let Some((_, rest)) = text.split_once("Cannot cast to Decimal") {
        // Arrow tells the digits of a decimal, and not where its point is.
        let (digits, number) = rest.split_once(". Overflowing on ")?;
        let digits = digits.split_once('(')?.1;
        let message = format!("a number of the digits {number} does not fit DECIMAL({digits}");
        return Some((message, Some(hint.to_owned())));
    }
    let hint = "`CAST(x AS DOUBLE)` makes a rounded one; DECIMALs of fewer digits behind the point leave room";
    if let Some((_, function)) = text.split_once("Decimal overflow while applying ") {
        let message = format!("too many digits in {function}: the result has more than its DECIMAL");
        return Some((message, Some(hint.to_owned())));
    }
    text.starts_with("too many digits in ").then(|| (text.to_owned(), Some(hint.to_owned())))
}

fn wrong_values(text: &str) -> Worded {
    if let Some((before, rest)) = text.split_once("Cannot cast string '") {
        let (value, data_type) = rest.rsplit_once("' to value of ")?;
        let (value, data_type) = (without_mark(value).trim(), data_type.trim_end_matches(" type"));
        let known = before.is_empty() || before.ends_with("Cast error: ");
        let hint = time_of(value).unwrap_or_else(|| "`TRY_CAST(x AS …)` makes NULL of what cannot be cast".to_owned());
        return known.then(|| (format!("'{value}' is no {data_type}"), Some(hint)));
    }
    if let Some((_, numbers)) = text.split_once("Arithmetic overflow: Overflow happened on: ") {
        return Some((format!("{numbers} does not fit 64 bits"), None));
    }
    if let Some(part) = between(text, "Date part '", "' not supported") {
        let hint = "they are year, quarter, month, week, day, hour, minute, second, millisecond, microsecond, epoch, decade, century, \
                    millennium, isoyear, dow, isodow and doy";
        return Some((format!("a time has no part `{}`", part.to_lowercase()), Some(hint.to_owned())));
    }
    if let Some(unit) = between(text, "Unsupported date_trunc granularity: '", "'") {
        let hint = "they are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, decade, century and millennium";
        return Some((format!("date_trunc knows no unit `{unit}`"), Some(hint.to_owned())));
    }
    if let Some((_, rest)) = text.split_once("Error parsing timestamp from '") {
        let (value, why) = rest.split_once("': ")?;
        let hint = "it is written `TIMESTAMP '2024-01-31 10:00:00'`; `TRY_CAST(x AS …)` makes NULL of what is none";
        let why = why.split(". ").next().unwrap_or(why);
        let message = match value.strip_suffix(NONE) {
            Some(value) => format!("'{value}' is no TIMESTAMP"),
            None => format!("'{value}' is no TIMESTAMP: {why}"),
        };
        let hint = time_of(without_mark(value)).unwrap_or_else(|| hint.to_owned());
        return Some((message, Some(hint)));
    }
    if text.starts_with("LIKE does not support escape_char") {
        let hint = "in a pattern that is a column, `\\` escapes: `a LIKE replace(pattern, '!', '\\')`".to_owned();
        return Some(("ESCAPE takes one character, behind a pattern that is written out".to_owned(), Some(hint)));
    }
    if let Some(number) = between(text, "Argument #", " must be an INTEGER or NULL, got ") {
        let message = format!("argument {number} must be a whole number that is known before the query runs");
        return Some((message, Some("write the number itself".to_owned())));
    }
    if text == "Scalar subquery returned more than one row" {
        let hint = "take one of them, `(SELECT max(x) …)`, or compare with all: `x IN (SELECT …)`".to_owned();
        return Some(("a subquery that stands for one value has several rows".to_owned(), Some(hint)));
    }
    if let Some(interval) = between(text, "Invalid input syntax for type interval: \"", "\"") {
        let interval = without_mark(interval);
        let hint = "it is written `INTERVAL '5 seconds'`; a number of ticks `s(5)`, `ms(5)` or `us(5)`".to_owned();
        return Some((format!("`{interval}` is no interval"), Some(hint)));
    }
    if let Some((function, _)) = text.split_once(" takes one share for all rows, and numbers") {
        let hint = format!("the numbers come first: `{function}(duration, 0.5)`");
        return Some((format!("the share of {function} is one number for all rows"), Some(hint)));
    }
    if text.contains("must be a literal") && text.contains("Percentile value for '") {
        let function = between(text, "Percentile value for '", "'")?.to_lowercase();
        let hint = format!("the numbers come first: `{function}(duration, 0.5)`");
        return Some((format!("the share of {function} is a number that is written out"), Some(hint)));
    }
    if text.contains("cannot take square root of a negative number") {
        let hint = "`sqrt(greatest(x, 0))`, or `CASE WHEN x >= 0 THEN sqrt(x) END`".to_owned();
        return Some(("a negative number has no square root".to_owned(), Some(hint)));
    }
    if text.contains("In an aggregate with DISTINCT, ORDER BY expressions must appear in argument list") {
        let hint =
            "sort by the value itself, `array_agg(DISTINCT x ORDER BY x)`, or group in a subquery first".to_owned();
        return Some(("an aggregate of DISTINCT values can be sorted by nothing else".to_owned(), Some(hint)));
    }
    if let Some(number) = between(text, "Percentile value must be between 0.0 and 1.0 inclusive, ", " is invalid") {
        return Some((format!("a percentile lies between 0 and 1, and `{number}` does not"), None));
    }
    if text == "Divide by zero error" {
        return Some(("division by zero".to_owned(), Some("`x / nullif(y, 0)` is NULL there".to_owned())));
    }
    if let Some(place) = between(text, "No files found at file://", ".") {
        return Some((format!("there is no file `{place}{}`", extension(text, place)), None));
    }
    None
}

/// What follows a path up to the full stop that ends the sentence.
fn extension<'a>(text: &'a str, path: &str) -> &'a str {
    let rest = text.split_once(path).map_or("", |(_, rest)| rest);
    rest.split(". ").next().unwrap_or_default().trim_end_matches('.')
}

/// How a time of a trace is compared or moved by a length of time.
const TICKS_FOR_INTERVALS: &str = "times of traces are numbers of ticks: `duration > ms(1)`, `start + us(5)`";

/// A number of ticks and an INTERVAL, added or divided.
fn ticks_and_interval(text: &str) -> Worded {
    let added = text.strip_prefix("Cannot automatically convert ").and_then(|types| types.split_once(" to "));
    let divided = || {
        let (types, _) = text.strip_prefix("Cannot get result type for temporal operation ")?.split_once(':')?;
        types.split_once(" / ")
    };
    let (left, right) = added.or_else(divided)?;
    let (left, right) = (left.trim(), right.trim());
    let is_interval = |data_type: &str| data_type.starts_with("Interval(");
    ((left == "Int64" && is_interval(right)) || (right == "Int64" && is_interval(left)))
        .then(|| ("a number and an INTERVAL do not go together".to_owned(), Some(TICKS_FOR_INTERVALS.to_owned())))
}

/// The text without the mark that says that it is no time.
fn without_mark(text: &str) -> &str {
    text.strip_suffix(NONE).unwrap_or(text)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after)?])
}

/// `Int64(5)` as `5`, `Utf8("a")` as `'a'`: what plans make of literals.
fn typed_literals(text: &str) -> String {
    const TYPES: [&str; 15] = [
        "Int64(",
        "Float64(",
        "Boolean(",
        "Int32(",
        "UInt64(",
        "Utf8(",
        "Int16(",
        "Int8(",
        "UInt32(",
        "UInt16(",
        "UInt8(",
        "Float32(",
        "Utf8View(",
        "LargeUtf8(",
        "Date32(",
    ];
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, literal)) = TYPES.iter().filter_map(|name| Some((rest.find(name)?, *name))).min() {
        let inside = &rest[at + literal.len()..];
        let begins = !rest[..at].ends_with(|c: char| c.is_alphanumeric());
        match inside.find(')').filter(|_| begins) {
            Some(end) => {
                translated.push_str(&rest[..at]);
                translated.push_str(&inside[..end].replace('"', "'"));
                rest = &inside[end + 1..];
            }
            None => {
                translated.push_str(&rest[..at + literal.len()]);
                rest = inside;
            }
        }
    }
    translated + rest
}

/// A message without names that the planner makes up and nobody wrote: those of common parts, of subqueries that became joins,
/// of VALUES without names of columns, and of the functions that operators stand for.
pub(super) fn without_internals(text: &str, source: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_alphanumeric() || c == '_') {
        let (before, word) = rest.split_at(at);
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        words.push_str(before);
        rest = after;
        let numbered = |prefix: &str| {
            word.strip_prefix(prefix)
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        };
        match word {
            _ if ["__correlated_sq_", "__scalar_sq_", "__in_subquery_"].into_iter().any(numbered) => {
                match rest.strip_prefix('.') {
                    Some(column) => rest = column,
                    None => words.push_str("the subquery"),
                }
            }
            "__unnest_placeholder" => {
                words.push_str("unnest");
                if let Some((argument, after)) = rest.split_once(",depth=") {
                    words.push_str(argument);
                    rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                }
            }
            "__always_true" => words.push('…'),
            _ if numbered("__common_expr_") => words.push('…'),
            _ if numbered("column") && !source.to_lowercase().contains(word) => words.push('…'),
            _ => words.push_str(word),
        }
    }
    words + rest
}

/// Arrow's names of types as SQL's.
pub(super) fn sql_types(text: &str) -> String {
    const NAMES: [(&str, &str); 19] = [
        ("Decimal128", "DECIMAL"),
        ("Decimal256", "DECIMAL"),
        ("Utf8View", "text"),
        ("LargeUtf8", "text"),
        ("Utf8", "text"),
        ("Int64", "BIGINT"),
        ("Int32", "INT"),
        ("UInt64", "unsigned BIGINT"),
        ("Float64", "DOUBLE"),
        ("Float32", "REAL"),
        ("Boolean", "BOOLEAN"),
        ("Date32", "DATE"),
        ("Timestamp(ns)", "TIMESTAMP"),
        ("Timestamp(ns, \"+00:00\")", "TIMESTAMPTZ"),
        ("Time64(ns)", "TIME"),
        ("Duration(ns)", "difference of times"),
        ("Interval(MonthDayNano)", "INTERVAL"),
        ("Decimal", "DECIMAL"),
        ("Null", "NULL"),
    ];
    let mut text = text.to_owned();
    for keys in ["Int32", "UInt32", "Int16", "Int64"] {
        for values in ["Utf8", "Utf8View", "LargeUtf8"] {
            text = text.replace(&format!("Dictionary({keys}, {values})"), "text");
        }
    }
    for (arrow, sql) in NAMES {
        text = replace_word(&text, arrow, sql);
    }
    text
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        replaced.push_str(before);
        replaced.push_str(if whole { by } else { word });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_speak_sql() {
        assert_eq!(
            in_words("Error during planning: Argument #2 must be an INTEGER or NULL, got Alias(Alias { expr: … })").0,
            "argument 2 must be a whole number that is known before the query runs"
        );
        let check = |text: &str, message: &str, hint: Option<&str>| {
            assert_eq!(in_words(text), (message.to_owned(), hint.map(str::to_owned)), "{text}");
        };
        check(
            "Execution error: Function 'us' user-defined coercion failed with: Error during planning: us takes one number, \
             found 0 arguments: write us(5). No function matches the given name and argument types 'us()'",
            "us takes one number, found 0 arguments: write us(5)",
            None,
        );
        check(
            "Failed to coerce arguments to satisfy a call to 'busy' function: coercion from Dictionary(Int32, Utf8), Int64 \
             to the signature Exact(Int64, Int64) failed. No function matches the given name and argument types \
             'busy(Dictionary(Int32, Utf8), Int64)'. You might need to add explicit type casts.\n\tCandidate functions:\n\tbusy(start: Int64, finish: Int64)",
            "`busy` does not take text, BIGINT",
            Some("there is busy(start: BIGINT, finish: BIGINT)"),
        );
        check(
            "Cannot create filter with non-boolean predicate 'tasks.name' returning Dictionary(Int32, Utf8)",
            "WHERE takes true or false, and `tasks.name` is text",
            Some("compare it: `tasks.name = …`"),
        );
        check(
            "Cast error: Cannot cast string 'a' to value of Int64 type",
            "'a' is no BIGINT",
            Some("`TRY_CAST(x AS …)` makes NULL of what cannot be cast"),
        );
        check("something of Utf8View and start > Int64(1)", "something of text and start > 1", None);
    }

    #[test]
    fn names_of_the_planner_are_not_shown() {
        for (text, expected) in [
            ("integer overflow in column1 + 10", "integer overflow in … + 10"),
            ("integer overflow in column2 + 10", "integer overflow in column2 + 10"),
            ("division of __common_expr_12 by 0", "division of … by 0"),
            ("no column `__correlated_sq_1.a`", "no column `a`"),
            ("two of __scalar_sq_3", "two of the subquery"),
            ("__unnest_placeholder(t.x,depth=1) is text", "unnest(t.x) is text"),
            ("my__common_expr_1 and column1x", "my__common_expr_1 and column1x"),
        ] {
            assert_eq!(without_internals(text, "SELECT column2 + 10 FROM t"), expected);
        }
    }

    #[test]
    fn keys_that_bind_tighter_are_explained() {
        let (message, hint) =
            in_words("Unexpected argument type to 'json_as_text' at position 2, expected string or int, got Float64.");
        assert_eq!(message, "`->>` takes a key or a position, not DOUBLE");
        assert_eq!(hint.unwrap(), "`+`, `-`, `*` and `::` bind tighter: write `(args->>'key')::BIGINT + 1`");
    }

    #[test]
    fn literals_are_as_typed() {
        assert_eq!(typed_literals("a > Int64(-5) AND b = Utf8(\"x\")"), "a > -5 AND b = 'x'");
        assert_eq!(typed_literals("MyInt64(5) Int64("), "MyInt64(5) Int64(");
    }
}
