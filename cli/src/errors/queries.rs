//! Messages for what can be wrong with a saved query.

use tq_engine::queries::{BindError, Need, QueryError, SavedQuery};

use super::{Failure, Problem};

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Io { path, source } => Problem::file("read", &path, &source).into(),
            QueryError::Header { file, error } => {
                let mut problem = Problem::new(error.message);
                problem.hints.extend(error.hint);
                problem.place = Some(format!("{file}:{}", error.line));
                problem.into()
            }
            QueryError::Sql { file, error } => Failure::from(error).in_file(&file, None),
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        let problem = Problem::new(error.to_string());
        match error {
            BindError::Unknown { query, nearest, known, .. } => {
                let mut problem = problem;
                if let Some(near) = nearest {
                    problem.message.push_str(&format!("; did you mean `{near}`?"));
                }
                match known.as_slice() {
                    [] => problem.hint(format!("`{query}` has no parameters")),
                    known => problem.hint(format!("its parameters are {}", known.join(", "))),
                }
            }
            BindError::Value { query, .. } => problem.hint(format!("`tq queries {query}` describes its parameters")),
            BindError::Missing { name, param_type, .. } => {
                let type_name = param_type.name();
                problem.hint(format!(
                    "`--param {name}=…` gives it one ({type_name}), in a prompt or template `{name}=…` behind the query's name"
                ))
            }
        }
        .into()
    }
}

/// What a query needs and the traces do not hold.
///
/// `there` is what the column of the first need holds instead of the values that it wants.
pub(crate) fn unmet(query: &SavedQuery, needs: &[Need], there: Option<Vec<String>>) -> Problem {
    let why = if needs.iter().any(|need| need.absent) {
        "these traces are not like that"
    } else {
        "that is not in these traces"
    };
    if needs.iter().any(|need| runs_wanted(need).is_some()) {
        let name = &query.name;
        return Problem::new(format!("`{name}` needs {}: fewer are open", needs_in_words(needs)))
            .hint(format!("name several traces, `tq query TRACE TRACE {name}`, or runs of a store, `tq query STORE --run 'night/*' {name}`"));
    }
    let problem = Problem::new(format!("`{}` needs {}: {why}", query.name, needs_in_words(needs)));
    let wanted = needs.iter().find(|need| !need.absent);
    let problem = match wanted.and_then(|need| Some((need, &need.with.as_ref()?.0))).zip(there) {
        Some(((need, column), there)) if there.is_empty() => {
            problem.hint(format!("`{}` has no rows with a {column}", need.table))
        }
        Some(((need, column), there)) => {
            problem.hint(format!("the {column} of `{}` here: {}", need.table, there.join(", ")))
        }
        None => problem.hint("`tq tables` says what the tables are for, `SELECT * FROM runs` what was opened"),
    };
    if !needs.iter().any(|need| run_wanted(need).is_some()) {
        return problem;
    }
    let traces: Vec<String> =
        query.header.needs.iter().filter_map(run_wanted).map(|name| format!("{name}=TRACE")).collect();
    problem.hint(format!("name the runs: `tq query {} {}`", traces.join(" "), query.name))
}

/// How many runs a need wants: they are numbered from 0.
fn runs_wanted(need: &Need) -> Option<u64> {
    match &need.with {
        Some((column, values)) if need.table == "runs" && column == "run_number" && !need.absent => {
            values.first()?.parse::<u64>().ok()?.checked_add(1)
        }
        _ => None,
    }
}

/// The name of a run that a need wants.
fn run_wanted(need: &Need) -> Option<&str> {
    match &need.with {
        Some((column, values)) if need.table == "runs" && (column == "run" || column == "study") && !need.absent => {
            values.first().map(String::as_str)
        }
        _ => None,
    }
}

/// "rows in `messages` and rows in `links` with kind = dependency".
pub(crate) fn needs_in_words(needs: &[Need]) -> String {
    let words: Vec<String> = needs
        .iter()
        .map(|need| {
            let rows = if need.absent { "no rows" } else { "rows" };
            match &need.with {
                None => format!("{rows} in `{}`", need.table),
                Some(_) if runs_wanted(need).is_some() => {
                    format!("at least {} runs", runs_wanted(need).unwrap_or_default())
                }
                Some((column, values)) if values.is_empty() => format!("{rows} in `{}` with a {column}", need.table),
                Some((column, values)) => format!("{rows} in `{}` with {column} = {}", need.table, values.join(" or ")),
            }
        })
        .collect();
    words.join(" and ")
}
