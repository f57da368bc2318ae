//! Messages for answers that cannot be written.

use std::io;

use datafusion::arrow::error::ArrowError;

use tq_engine::error::io_reason;

use super::{Failure, Problem};

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            kind => {
                let problem = Problem::new(format!("cannot write the answer: {}", io_reason(&error)));
                match kind {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        problem.hint("make room, or write it elsewhere with `-o FILE`").into()
                    }
                    _ => problem.into(),
                }
            }
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            ArrowError::InvalidArgumentError(what) => Problem::new(format!("cannot write the answer: {what}")).into(),
            error => Problem::new(format!("cannot write the answer: {error}")).into(),
        }
    }
}
