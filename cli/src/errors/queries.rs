//! The words for what can be wrong with a saved query.

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
pub(crate) fn unmet(query: &SavedQuery, needs: &[Need]) -> Problem {
    let why = if needs.iter().any(|need| need.absent) {
        "these traces are not like that"
    } else {
        "that is not in these traces"
    };
    Problem::new(format!("`{}` needs {}: {why}", query.name, needs_in_words(needs)))
        .hint("`tq tables` says what the tables hold, `SELECT * FROM runs` what was opened")
}

/// "rows in `messages` and rows in `links` with kind = dependency".
pub(crate) fn needs_in_words(needs: &[Need]) -> String {
    let words: Vec<String> = needs
        .iter()
        .map(|need| {
            let rows = if need.absent { "no rows" } else { "rows" };
            match &need.with {
                None => format!("{rows} in `{}`", need.table),
                Some((column, values)) => format!("{rows} in `{}` with {column} = {}", need.table, values.join(" or ")),
            }
        })
        .collect();
    words.join(" and ")
}
