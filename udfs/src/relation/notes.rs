//! Notes: what a function reports besides its rows, such as "3 links name tasks that are not there".
//!
//! Functions do not print. Each query has a [`Notes`] sink in its configuration; functions reach it through the task context, and
//! the caller takes the collected notes when the query has ended.
//!
//! ```text
//! SessionConfig::with_extension(Arc<Notes>) -> TaskContext -> Work::note -> Notes::take -> stderr
//! ```

use std::sync::{Arc, Mutex, PoisonError};

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

/// Gathers the notes of a query.
#[derive(Debug, std::default::Default)]
pub struct Notes(Mutex<Vec<Note>>);

impl Notes {
    /// The sink of a query, if it has one.
    pub fn of(context: &TaskContext) -> Option<Arc<Notes>> {
        context.session_config().get_extension::<Notes>()
    }

    /// Adds a note, once: a function that stands twice in a query says a thing only once.
    pub fn add(&self, note: Note) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Takes the notes that have gathered since the last time.
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
