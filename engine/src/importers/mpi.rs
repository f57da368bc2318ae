//! The role of an MPI call, from its name, for traces that do not record what their tasks do.

/// Calls that only wait.
const WAITS: [&str; 7] = ["mprobe", "probe", "wait", "waitall", "waitany", "waitsome", "win_wait"];

/// Calls that send, receive, test or synchronise, in the order of the alphabet. Nonblocking (`i…`) and persistent (`…_init`) forms of a call
/// are not listed again.
const COMMUNICATION: [&str; 65] = [
    "accumulate",
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "bsend",
    "cancel",
    "compare_and_swap",
    "exscan",
    "fetch_and_op",
    "gather",
    "gatherv",
    "get",
    "get_accumulate",
    "iprobe",
    "mrecv",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "parrived",
    "pready",
    "precv",
    "psend",
    "put",
    "raccumulate",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "rget",
    "rget_accumulate",
    "rput",
    "rsend",
    "scan",
    "scatter",
    "scatterv",
    "send",
    "sendrecv",
    "sendrecv_replace",
    "ssend",
    "start",
    "startall",
    "test",
    "testall",
    "testany",
    "testsome",
    "win_complete",
    "win_fence",
    "win_flush",
    "win_flush_all",
    "win_flush_local",
    "win_flush_local_all",
    "win_lock",
    "win_lock_all",
    "win_post",
    "win_start",
    "win_test",
    "win_unlock",
    "win_unlock_all",
];

/// The role of a task that is named after a call of MPI (version 4.1 of the standard): `wait`, `communication`, or `runtime` for calls that start
/// and end MPI; `None` for every other name. Knows the profiling interface (`PMPI_Send`), Fortran's spelling (`mpi_send_`), large counts
/// (`MPI_Send_c`) and names with arguments (`MPI_Wait(request)`).
pub(super) fn role(name: &str) -> Option<&'static str> {
    let call = name.strip_prefix(['p', 'P']).unwrap_or(name);
    let (_, call) = call.split_at_checked(4).filter(|(prefix, _)| prefix.eq_ignore_ascii_case("mpi_"))?;
    let call = call.split('(').next().unwrap_or(call).trim_end().trim_end_matches('_').to_ascii_lowercase();
    let call = call.strip_suffix("_c").unwrap_or(&call);
    let is_one_of = |calls: &[&str], call: &str| calls.binary_search(&call).is_ok();
    let communicates = |call: &str| is_one_of(&COMMUNICATION, call.strip_suffix("_init").unwrap_or(call));
    if is_one_of(&WAITS, call) {
        Some("wait")
    } else if communicates(call) || call.strip_prefix('i').is_some_and(communicates) {
        Some("communication")
    } else if matches!(call, "init" | "init_thread" | "finalize" | "abort" | "session_init" | "session_finalize") {
        Some("runtime")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMUNICATION, WAITS, role};

    #[test]
    fn calls_are_told_by_their_names() {
        for wait in
            ["MPI_Wait", "MPI_Waitall", "PMPI_Waitany", "mpi_waitsome_", "MPI_Probe", "MPI_Wait(req)", "MPI_Win_wait"]
        {
            assert_eq!(role(wait), Some("wait"), "{wait}");
        }
        let calls = [
            "MPI_Isend",
            "MPI_Allreduce",
            "MPI_Iallreduce_c",
            "MPI_Allreduce_init",
            "MPI_Barrier",
            "MPI_Get",
            "MPI_Ineighbor_alltoallw",
            "mpi_sendrecv__",
            "MPI_Imrecv",
        ];
        for call in calls {
            assert_eq!(role(call), Some("communication"), "{call}");
        }
        for call in ["MPI_Init_thread", "MPI_Finalize", "mpi_init_"] {
            assert_eq!(role(call), Some("runtime"), "{call}");
        }
        let others = [
            "MPI",
            "MPI_",
            "stencil",
            "pmpi",
            "",
            "my_MPI_Wait",
            "mpiexec",
            "mpi_solver",
            "MPI_File_write_all",
            "MPI_Waiting for godot",
            "MPI_Get_count",
            "MPI_Reduce_local",
        ];
        for other in others {
            assert_eq!(role(other), None, "{other}");
        }
    }

    #[test]
    fn lists_are_sorted() {
        assert!(WAITS.is_sorted() && COMMUNICATION.is_sorted());
    }
}
