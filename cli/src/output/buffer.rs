//! An output that keeps its bytes in memory: for pages that show answers, and for tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::writer::Writer;

/// Collects what is written to its [`Buffer::writer`]s.
#[derive(Clone, Default)]
pub(crate) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    pub(crate) fn writer(&self) -> Writer {
        Box::new(self.clone())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bytes as text; outputs for people write nothing else.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes batches as one result.
#[cfg(test)]
pub(crate) fn write(output: &mut dyn super::writer::Output, batches: &[datafusion::arrow::array::RecordBatch]) {
    output.begin(&batches[0].schema()).unwrap();
    for batch in batches {
        output.rows(batch).unwrap();
    }
    output.end().unwrap();
    output.close().unwrap();
}
