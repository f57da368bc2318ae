//! What calls of MPI are, told by their names: where a trace does not say what its tasks do.

/// The role of a task that has the name of an MPI call; `None` for every other name. A wait or a probe only waits, setting up and
/// asking is the runtime's work, and every other call communicates. Names as in the MPI standard, also of the profiling interface
/// (`PMPI_Send`) and as Fortran compilers write them (`mpi_send_`).
pub(super) fn role(name: &str) -> Option<&'static str> {
    let call = name.strip_prefix(['p', 'P']).unwrap_or(name);
    let (_, call) = call.split_at_checked(4).filter(|(prefix, _)| prefix.eq_ignore_ascii_case("mpi_"))?;
    let call = call.to_ascii_lowercase();
    let mut words = call.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    Some(match (words.next().unwrap_or(""), words.next()) {
        ("wait" | "waitall" | "waitany" | "waitsome" | "probe" | "mprobe", _) => "wait",
        // Input and output is the program's own work.
        ("file", _) => return None,
        // Of one-sided communication; all other calls that begin so ask the runtime.
        ("get", None | Some("accumulate")) => "communication",
        (
            "init" | "initialized" | "finalize" | "finalized" | "abort" | "session" | "wtime" | "wtick" | "get"
            | "comm" | "group" | "type" | "info" | "op" | "attr",
            _,
        ) => "runtime",
        _ => "communication",
    })
}

#[cfg(test)]
mod tests {
    use super::role;

    #[test]
    fn calls_are_told_by_their_names() {
        for wait in ["MPI_Wait", "MPI_Waitall", "PMPI_Waitany", "mpi_waitsome_", "MPI_Probe", "MPI_Wait(req)"] {
            assert_eq!(role(wait), Some("wait"), "{wait}");
        }
        for call in ["MPI_Isend", "MPI_Allreduce", "MPI_Barrier", "MPI_Get", "MPI_Get_accumulate", "MPI_DATA_PLD_SND"] {
            assert_eq!(role(call), Some("communication"), "{call}");
        }
        for call in
            ["MPI_Init_thread", "MPI_Finalize", "MPI_Comm_rank", "MPI_Get_count", "MPI_Type_commit", "MPI_Wtime"]
        {
            assert_eq!(role(call), Some("runtime"), "{call}");
        }
        for other in ["MPI", "stencil", "pmpi", "", "my_MPI_Wait", "mpiexec", "MPI_File_write_all"] {
            assert_eq!(role(other), None, "{other}");
        }
    }
}
