//! Notes: what a function reports besides its rows, such as "3 links name tasks that are not there".
//!
//! Functions do not print. Each query has a [`Notes`] sink in its configuration; functions reach it through the task context, and
//! the caller takes the collected notes when the query has ended.
//!
//! ```text
//! SessionConfig::with_extension(Arc<Notes>) -> TaskContext -> Work::note -> Notes::take -> stderr
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion_execution::TaskContext;

/// One remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The function that makes it.
    pub function: String,
    /// The remark; a sentence without full stop.
    pub text: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.function, self.text)
    }
}

/// What a function says, before it is a text: runs may be divided among several computations of it, whose remarks are put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A sentence without full stop.
    Text(String),
    /// Something of so many rows: `1 task was left out`, `7 tasks were left out`.
    OfRows {
        /// How many; of none nothing is said.
        count: usize,
        /// What follows the number 1.
        one: String,
        /// What follows another one.
        many: String,
    },
    /// Something of these runs.
    OfRuns {
        /// How many runs there are.
        all: usize,
        /// Those of which it is said, as [`super::runs::Runs::describe`] names them; of none nothing is said.
        these: Vec<String>,
        /// What is said if it is all of them.
        of_all: String,
        /// What else is said before their names.
        of_some: String,
    },
}

/// Runs that are named at most.
const NAMED: usize = 8;

impl Said {
    /// The sentence, if there is something to say.
    fn text(&self) -> Option<String> {
        match self {
            Said::Text(text) => Some(text.clone()),
            Said::OfRows { count: 0, .. } => None,
            Said::OfRows { count, one, many } => Some(format!("{count} {}", if *count == 1 { one } else { many })),
            Said::OfRuns { all, these, of_all, .. } if *all == these.len() => Some(of_all.clone()),
            Said::OfRuns { these, .. } if these.is_empty() => None,
            Said::OfRuns { these, of_some, .. } => {
                let mut names = these.clone();
                names.sort_unstable();
                let more = names.len().saturating_sub(NAMED);
                names.truncate(NAMED);
                if more > 0 {
                    names.push(format!("and {more} more"));
                }
                Some(format!("{of_some} {}", names.join(", ")))
            }
        }
    }

    /// Takes in what was said of other rows or runs; `false` if that is something else.
    fn takes_in(&mut self, part: &Said) -> bool {
        match (self, part) {
            (Said::Text(text), Said::Text(again)) => text == again,
            (Said::OfRows { count, one, many }, Said::OfRows { count: more, one: of_one, many: of_many })
                if (&*one, &*many) == (of_one, of_many) =>
            {
                *count += more;
                true
            }
            (
                Said::OfRuns { all, these, of_all, of_some },
                Said::OfRuns { all: more, these: others, of_all: all_of, of_some: some_of },
            ) if (&*of_all, &*of_some) == (all_of, some_of) => {
                *all += more;
                these.extend_from_slice(others);
                true
            }
            _ => false,
        }
    }
}

/// Gathers the notes of a query.
#[derive(Debug, std::default::Default)]
pub struct Notes(Mutex<Vec<(String, Said)>>);

impl Notes {
    /// The sink of a query, if it has one.
    pub fn of(context: &TaskContext) -> Option<Arc<Notes>> {
        context.session_config().get_extension::<Notes>()
    }

    fn all(&self) -> MutexGuard<'_, Vec<(String, Said)>> {
        // Each change is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note.
    pub fn add(&self, note: Note) {
        self.say(note.function, Said::Text(note.text));
    }

    /// Adds what a function says, once: one that stands twice in a query says a thing only once.
    pub fn say(&self, function: String, said: Said) {
        let (mut all, said) = (self.all(), (function, said));
        if !all.contains(&said) {
            all.push(said);
        }
    }

    /// Adds what a function says of other rows or runs than before: `3 links were left out` becomes `5 links were left out`.
    pub fn say_part(&self, function: String, said: Said) {
        let mut all = self.all();
        let mut before = all.iter_mut().filter(|(of, _)| *of == function);
        if !before.any(|(_, before)| before.takes_in(&said)) {
            all.push((function, said));
        }
    }

    /// Takes the notes that have gathered since the last time.
    pub fn take(&self) -> Vec<Note> {
        let note = |(function, said): (String, Said)| Some(Note { text: said.text()?, function });
        self.take_said().into_iter().filter_map(note).collect()
    }

    /// Takes what was said since the last time, as parts of what is to be said.
    pub fn take_said(&self) -> Vec<(String, Said)> {
        std::mem::take(&mut *self.all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(said: Vec<Said>) -> Vec<String> {
        let notes = Notes::default();
        said.into_iter().for_each(|said| notes.say_part("slack".to_owned(), said));
        notes.take().into_iter().map(|note| note.text).collect()
    }

    fn rows(count: usize) -> Said {
        Said::OfRows { count, one: "task was left out".to_owned(), many: "tasks were left out".to_owned() }
    }

    fn runs(all: usize, these: &[&str]) -> Said {
        Said::OfRuns {
            all,
            these: these.iter().map(|run| (*run).to_owned()).collect(),
            of_all: "there are no links, so there is no path".to_owned(),
            of_some: "there are no links in".to_owned(),
        }
    }

    #[test]
    fn what_is_said_of_parts_is_said_of_the_whole() {
        assert_eq!(texts(vec![rows(0)]), [""; 0]);
        assert_eq!(texts(vec![rows(1), rows(0)]), ["1 task was left out"]);
        assert_eq!(texts(vec![rows(1), Said::Text("so".to_owned()), rows(2)]), ["3 tasks were left out", "so"]);
        assert_eq!(texts(vec![Said::Text("so".to_owned()), Said::Text("so".to_owned())]), ["so"]);
        assert_eq!(texts(vec![runs(2, &[]), runs(1, &[])]), [""; 0]);
        assert_eq!(texts(vec![runs(2, &["b", "c"]), runs(2, &["a"])]), ["there are no links in a, b, c"]);
        assert_eq!(texts(vec![runs(1, &["b"]), runs(1, &["a"])]), ["there are no links, so there is no path"]);
        let many: Vec<String> = (10..30).map(|run| run.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let text = "there are no links in 10, 11, 12, 13, 14, 15, 16, 17, and 12 more";
        assert_eq!(texts(vec![runs(21, &many)]), [text]);
    }

    #[test]
    fn a_thing_is_said_once() {
        let notes = Notes::default();
        (0..2).for_each(|_| notes.say("slack".to_owned(), rows(3)));
        assert_eq!(notes.take().len(), 1);
        assert_eq!(notes.take(), []);
    }
}
