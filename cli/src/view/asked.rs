//! Runs the page's questions: each on a connection of its own, at most four at a time, and each can be cancelled by itself.

use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, Semaphore};

use crate::connection::Connection;
use crate::errors::{Failure, Problem};

/// Questions that are answered at a time.
const AT_A_TIME: usize = 4;

/// Answers questions about one session.
pub(super) struct Asked {
    /// Connections that answer nothing.
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
}

/// Dropped when the page no longer waits for an answer: its query is then cancelled.
struct Abandon(Arc<Notify>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // A runtime must not end on a thread of another one, which may be where the last request of a range ends.
        let idle = std::mem::take(self.idle.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        std::thread::spawn(move || drop(idle));
    }
}

impl Asked {
    pub(super) fn of(connection: &Connection) -> Result<Asked, Failure> {
        let idle = (0..AT_A_TIME).map(|_| connection.beside()).collect::<Result<Vec<_>, _>>()?;
        Ok(Asked { idle: Mutex::new(idle), places: Arc::new(Semaphore::new(AT_A_TIME)) })
    }

    /// Answers a question as soon as there is a place. When the returned future is dropped, the query ends, and gives its place back then.
    pub(super) async fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let closed = || Failure::from(Problem::internal("nobody answers any more"));
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        let mut connection = self.idle.lock().ok().and_then(|mut idle| idle.pop()).ok_or_else(closed)?;
        let abandoned = Arc::new(Notify::new());
        connection.until(Arc::clone(&abandoned));
        let _abandon = Abandon(abandoned);
        let asked = Arc::clone(self);
        let answered = tokio::task::spawn_blocking(move || {
            let answer = work(&mut connection);
            connection.take_notes();
            if let Ok(mut idle) = asked.idle.lock() {
                idle.push(connection);
            }
            drop(place);
            answer
        });
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}
