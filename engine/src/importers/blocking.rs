//! Which calls of a thread only wait: for a device, for another thread, or for time to pass. Only their names tell.
//!
//! Calls that wait on the way to something else (`cudaMemcpy`, `read`) are not among them: what they do is work.

/// Calls of the operating system, as Nsight Systems names them.
const OF_THE_SYSTEM: [&str; 34] = [
    "accept",
    "accept4",
    "clock_nanosleep",
    "epoll_pwait",
    "epoll_wait",
    "futex",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect",
    "pselect6",
    "pthread_barrier_wait",
    "pthread_cond_clockwait",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_timedjoin_np",
    "select",
    "sem_clockwait",
    "sem_timedwait",
    "sem_wait",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "sleep",
    "usleep",
    "wait",
    "waitid",
    "waitpid",
];

/// Waits of SYCL's and Level Zero's runtimes, whose names do not say `Synchronize`.
const OF_XPU: [&str; 6] =
    ["piEventsWait", "piQueueFinish", "sycl::queue::wait", "urEventWait", "urQueueFinish", "zeEventHostWait"];

/// Whether a call into the runtime or driver of a device waits for it: `cudaStreamSynchronize`, `cuEventSynchronize_ptsz`,
/// `hipDeviceSynchronize`, `zeCommandQueueSynchronize`.
pub(super) fn waits_for_device(call: &str) -> bool {
    call.contains("Synchronize") || OF_XPU.contains(&call)
}

/// Whether a call of the operating system waits.
pub(super) fn waits_in_system(call: &str) -> bool {
    OF_THE_SYSTEM.binary_search(&call).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_by_their_names() {
        assert!(OF_THE_SYSTEM.is_sorted() && OF_XPU.is_sorted());
        let waits = ["cudaStreamSynchronize", "cuCtxSynchronize", "cuStreamSynchronize_ptsz", "hipDeviceSynchronize"];
        assert!(waits.into_iter().all(waits_for_device));
        assert!(
            ["cudaLaunchKernel", "cudaMemcpy", "cudaEventQuery", "cudaStreamWaitEvent"]
                .into_iter()
                .all(|call| !waits_for_device(call))
        );
        assert!(waits_in_system("poll") && waits_in_system("waitpid"));
        assert!(!waits_in_system("read") && !waits_in_system("ioctl"));
    }
}
