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

/// Calls that ask whether a device is done yet, and return at once: threads poll with them, and do nothing else meanwhile.
const POLLS: [&str; 8] = [
    "cuEventQuery",
    "cuStreamQuery",
    "cudaEventQuery",
    "cudaStreamQuery",
    "hipEventQuery",
    "hipStreamQuery",
    "hipStreamQuery_spt",
    "zeEventQueryStatus",
];

/// Waits of SYCL's and Level Zero's runtimes, whose names do not say `Synchronize`.
const OF_XPU: [&str; 6] =
    ["piEventsWait", "piQueueFinish", "sycl::queue::wait", "urEventWait", "urQueueFinish", "zeEventHostWait"];

/// Functions of Python's library that wait, by their files. Those of PyTorch's streams and events of the same names return at once.
const OF_PYTHON: [(&str, &str); 13] = [
    ("concurrent/futures/_base.py", "result"),
    ("concurrent/futures/_base.py", "wait"),
    ("multiprocessing/connection.py", "poll"),
    ("multiprocessing/connection.py", "wait"),
    ("multiprocessing/popen_fork.py", "wait"),
    ("multiprocessing/queues.py", "get"),
    ("queue.py", "get"),
    ("selectors.py", "select"),
    ("subprocess.py", "wait"),
    ("threading.py", "_wait_for_tstate_lock"),
    ("threading.py", "acquire"),
    ("threading.py", "join"),
    ("threading.py", "wait"),
];

/// What Python's built-in functions and methods that wait begin with, as PyTorch's profiler names them.
const OF_PYTHON_IN_C: [&str; 12] = [
    "<built-in function sleep>",
    "<built-in method acquire of _",
    "<built-in method poll of select.",
    "<built-in method select of module",
    "<built-in method sleep of module",
    "<built-in method wait of _",
    "<built-in method waitpid of module",
    "<method 'acquire' of '_multiprocessing.SemLock'",
    "<method 'acquire' of '_thread.",
    "<method 'get' of '_queue.SimpleQueue'",
    "<method 'poll' of 'select.",
    "<method 'select' of 'select.",
];

/// The same as VizTracer names them.
const OF_PYTHON_BY_MODULE: [&str; 9] = [
    "_queue.SimpleQueue.get",
    "_thread.RLock.acquire",
    "_thread.lock.acquire",
    "posix.waitpid",
    "select.epoll.poll",
    "select.poll.poll",
    "select.select",
    "threading.Lock.acquire",
    "time.sleep",
];

/// Whether a function of Python waits: `threading.py(359): wait`, `<built-in method acquire of _thread.lock object at 0x7f…>`, and as
/// VizTracer writes it `Condition.wait (/usr/lib/python3.11/threading.py:288)`, `_thread.lock.acquire`.
pub(super) fn waits_in_python(function: &str) -> bool {
    if function.starts_with('<') {
        return OF_PYTHON_IN_C.iter().any(|begin| function.starts_with(begin));
    }
    let of_kineto = || {
        let (place, name) = function.rsplit_once("): ")?;
        Some((place.rsplit_once('(')?.0, name))
    };
    let of_viztracer = || {
        let (name, place) = function.strip_suffix(')')?.split_once(" (")?;
        Some((place.rsplit_once(':')?.0, name.rsplit_once('.').map_or(name, |(_, method)| method)))
    };
    let Some((file, name)) = of_kineto().or_else(of_viztracer) else { return OF_PYTHON_BY_MODULE.contains(&function) };
    OF_PYTHON.iter().any(|(waiting_file, waiting)| {
        *waiting == name
            && file.strip_suffix(waiting_file).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    })
}

/// Whether a call into the runtime or driver of a device waits for it, or asks whether it is done: `cudaStreamSynchronize`,
/// `cuEventSynchronize_ptsz`, `hipDeviceSynchronize`, `zeCommandQueueSynchronize`, `synchronizeStream` (MTIA), `cudaEventQuery`.
pub(super) fn waits_for_device(call: &str) -> bool {
    call.contains("ynchronize") || OF_XPU.contains(&call) || POLLS.contains(&call)
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
        assert!(OF_THE_SYSTEM.is_sorted() && OF_XPU.is_sorted() && OF_PYTHON.is_sorted() && OF_PYTHON_IN_C.is_sorted());
        let waits = [
            "cudaStreamSynchronize",
            "cuCtxSynchronize",
            "cuStreamSynchronize_ptsz",
            "hipDeviceSynchronize",
            "cudaEventQuery",
            "synchronizeStream",
        ];
        assert!(waits.into_iter().all(waits_for_device));
        assert!(
            ["cudaLaunchKernel", "cudaMemcpy", "cudaEventRecord", "cudaStreamWaitEvent"]
                .into_iter()
                .all(|call| !waits_for_device(call))
        );
        assert!(waits_in_system("poll") && waits_in_system("waitpid"));
        assert!(!waits_in_system("read") && !waits_in_system("ioctl"));
        let waits = [
            "threading.py(359): wait",
            "/usr/lib/python3.12/queue.py(171): get",
            "<built-in method acquire of _thread.lock object at 0x7f1bafe38dd0>",
            "<method 'acquire' of '_thread.lock' objects>",
            "Condition.wait (/usr/lib/python3.11/threading.py:288)",
            "get (/usr/lib/python3.11/queue.py:154)",
            "_thread.lock.acquire",
            "time.sleep",
        ];
        assert!(waits.into_iter().all(waits_in_python));
        let works = [
            "torch/cuda/streams.py(193): wait",
            "<built-in method wait of Event object at 0x7f1bafe38dd0>",
            "<built-in method select of type object at 0x7f61e5026e80>",
            "my_threading.py(3): wait",
            "threading.py(1075): _bootstrap_inner",
            "Thread.run (/usr/lib/python3.11/threading.py:971)",
            "Client.get (/home/user/requests.py:3)",
            "builtins.exec",
            "wait",
        ];
        assert!(works.into_iter().all(|function| !waits_in_python(function)));
    }
}
