//! The trace of `\open example`: Taskflow's wavefront over a grid of 24 × 24 tasks and its graph, for those who have no trace at hand.

use std::io;

use tq_engine::trace::temporary::TemporaryFolder;

use crate::errors::{Failure, Problem};

/// The trace, and the graph that lies beside it.
const FILES: [(&str, &[u8]); 2] = [
    ("wavefront.tfp", include_bytes!("../../../fixtures/tfprof/wavefront_40.tfp")),
    ("wavefront.dot", include_bytes!("../../../fixtures/tfprof/wavefront_40.dot")),
];

/// Files as long as they are open; readers want files.
pub(super) struct Example(TemporaryFolder);

impl Example {
    pub(super) fn write() -> Result<Example, Failure> {
        let failed = |error: io::Error| Problem::file("write the example to", &std::env::temp_dir(), &error);
        let folder = TemporaryFolder::new().map_err(failed)?;
        for (name, bytes) in FILES {
            std::fs::write(folder.file(name), bytes).map_err(failed)?;
        }
        Ok(Example(folder))
    }

    /// As a command line names it.
    pub(super) fn trace(&self) -> String {
        format!("example={}", self.0.file(FILES[0].0).display())
    }
}
