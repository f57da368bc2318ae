//! `tq tables`, `functions`, `formats` and `queries`: what there is, with its documentation.

use expect_test::expect;

use super::Place;

#[test]
fn lists_describe_themselves() {
    let place = Place::new();
    place.tq("tables runs").check(&expect![[r#"
        runs: One row per recording that the session opened.

          run           Its name: the given name, else the file's stem, made unique. (VARCHAR)
          run_number    Counts from 0 in the order in which the traces were given. (BIGINT)
          format        The format that was recognised; `tq formats` lists them. (VARCHAR)
          source        The file or directory it was read from. (VARCHAR)
          program       The traced program, where the trace knows it. (VARCHAR)
          started_at    Wall-clock time of the origin; NULL where the trace has no date. (TIMESTAMP)
          time_unit     The unit of the trace's own times: ns, ps, us, cycles … (VARCHAR)
          origin        The trace's own clock at tick 0, in nanoseconds; NULL where the trace has none.
                        (BIGINT)
          makespan      Last finish minus first start of `program_tasks`; NULL without timed ones. (BIGINT,
                        ticks)
          tasks         Number of its tasks. (BIGINT)
          locations     Number of its locations. (BIGINT)
          processes     Number of distinct processes; NULL where the trace does not tell. (BIGINT)
          cores         Cores used, where the trace or `--run-arg cores=` tells. (BIGINT)
          argument      The problem size as it was written. (VARCHAR)
          problem_size  The problem size as a number. (DOUBLE)
          size_order    Rank of the problem size within a scalability study. (BIGINT)
          repetition    Number of the repetition within a study, from 0. (BIGINT)
          args          Machine, commit, parameters, `--run-arg k=v`: a JSON object. (VARCHAR)
          study         The scalability study that it is an execution of; NULL for a run that is none.
                        (VARCHAR)
        --- exit 0
    "#]]);
    place.tq("tables").check(&expect![[r#"
        Tables of every session:
          runs                       One row per recording that the session opened.
          locations                  What executes: nodes, processes, threads, workers, streams, components;
                                     also those that never ran.
          tasks                      Executed units of work, each a half-open span [start, finish) on a
                                     location.
          links                      Directed links between tasks.
          messages                   Messages between locations.
          counters                   Values over time, or totals.
          events                     Instants: milestones, marks, tags.
          import_stats               What was skipped, repaired, rounded or guessed while reading: nothing
                                     is dropped silently.
          program_tasks              (view) The tasks of the program: `tasks` without the rows that the
                                     recorder wrote of itself (role profiler); in a slice (`--from`,
                                     `--to`), cut at its borders. Functions read it when their `tasks` is
                                     left out, and so do the saved queries.
          program_locations          (view) The locations of the program: `locations` without those that
                                     hold nothing but what the recorder wrote of itself (role profiler). The
                                     saved queries read it.
          working_tasks              (view) Tasks that kept a location busy. Left out of `program_tasks` are
                                     asynchronous spans and states of threads (locations of kind async and
                                     state), transfers (role communication of the location), waits, and the
                                     steps of PyTorch's profiler (`ProfilerStep#…`, and kind
                                     gpu_user_annotation). Saved queries about busy locations, parallelism
                                     and idle time read it.
          working_spans              (view) The spans in which tasks worked: `working_tasks` without the
                                     waits inside them (`cudaStreamSynchronize` in an operator), whatever
                                     runs inside of those; waits that lie in no task, and those of streams
                                     (kind cuda_sync), take nothing from others. A task that waits is there
                                     once for each piece that is left of it; all others are there once.
                                     Where tasks of a location overlap without nesting (`depth` is NULL),
                                     waits are taken from no other task. Saved queries about busy and idle
                                     time read it.
          work_by_name               (view) The work of each name of task: its `working_spans` without what
                                     started later on their location.
          working_locations          (view) The locations that execute tasks: `program_locations` without
                                     those of kind async and state and of role communication (all of them
                                     where there are no others).
          working_lanes              (view) Locations that run tasks themselves: `working_locations` without
                                     those that hold others (executors, processes, ranks, nodes, devices,
                                     scopes) and without ports. A rank, process, node or executor that holds
                                     no other and has tasks is one.
          busy_lanes                 (view) How long each of the `working_lanes` was busy, those that never
                                     ran included.
          spans_and_ends             (view) The `working_spans`, and for each run two without task and
                                     length, at its first start and its last finish on one of its locations:
                                     intervals and gaps over them reach from end to end of the run, as its
                                     makespan does, also where it begins or ends with what is no work. Saved
                                     queries over time read it.
          idle_stretches             (view) When locations ran nothing: the gaps between their
                                     `working_spans`, from the first start to the last finish of their run,
                                     as its makespan, or of the slice. Locations without spans have none.
                                     Saved queries about idle time read it.
          collectives                (view) Tasks in which ranks work together and none is done before the
                                     last one has begun: communication kernels of devices (NCCL, RCCL), and
                                     those of gloo and MPI whose result needs all ranks. The k-th of a name
                                     and process group on each rank is the same one; a first one that ended
                                     before those of the others began, or at the beginning of a slice is the
                                     rest of one, is an earlier one. Left out are those that only one rank
                                     has and those that one rank ended before another began. Where ranks
                                     have clocks of their own and the same number of them, they are taken as
                                     they stand: where clocks differ, so do starts.
          path_tasks                 (view) The tasks of an executed path: `program_tasks`, where a rank
                                     that waits in a collective begins it one tick after the last one did.
                                     Until then it has a task of role wait with a number below 0, and by
                                     `path_links` the path goes on where the rank was that all waited for.
                                     Steps of PyTorch's profiler (`ProfilerStep#…`), which hold all that
                                     runs meanwhile, are left out.
          path_links                 (view) What released the tasks of an executed path: `links`; kind
                                     collective from the rank that began a collective last to the others;
                                     kind device from the work that ended last on a device to what begins
                                     there next on another stream. The last are guesses: recordings of
                                     devices seldom name the events for which streams wait.
          name_families              (view) What a name of task is called where runs are compared. Where
                                     nine of ten names occur once in a run (`blur_3_2`), names that differ
                                     in numbers alone are one, `blur_*_*`, if that leaves more than one, and
                                     at most a quarter; else each is its own. Tasks without name are not in
                                     it.
          parent_links               (view) The parents of tasks: declared by the trace, or by nesting on a
                                     lane; a task can have both.
          lost_dependencies          (view) How many dependencies a recording names that are no `links`,
                                     since a task at their end is not known: chains through them are cut.
                                     Only runs that lost some have a row.
          messages_by_pair           (view) How many messages and bytes each location sent to each other
                                     one, each message once: where a run has messages as they are sent (kind
                                     logical), as they are handled (handled) and the buffers that carry them
                                     (local_send, nonblock_send), only the first of these count.
          executions                 (view) Scalability studies: one row per run, region and repetition.
          actorprof.totals           (view) How many messages of each kind a PE sent and received; a row
                                     with 0 for a kind of which it has none.
          actorprof.cycles           (view) What the PEs of a run spend cycles on, in all, and who
                                     communicates most and least. PEs whose clocks contradict each other (a
                                     part below 0) are left out.
          changed.names              (view) How many names of tasks the runs `base` and `new` have, one row:
                                     two programs have none in common.
          changed.work               (view) The work of each name of task, or family of names
                                     (`name_families`), of every run as in `work_by_name`, where a rank that
                                     waits in a collective for the last one does not work, and collectives
                                     on streams that only communicate do: what comparisons call work.
          changed.path               (view) What the executed paths (of `path_tasks` and `path_links`) of
                                     the runs `base` and `new` spent: `explain_change` by name of task or
                                     family of names, with what that means.
          changed.tasks              (view) Which tasks changed from the run `base` to the run `new`: longer
                                     or shorter, all of a name, those on some locations or few of them, or
                                     more of them. `task-times-changed` says how that is told.
          changed.locations          (view) Which locations are busy for longer or shorter in the run `new`
                                     than in the run `base`, unlike the others of their kind.
          changed.frames             (view) What the frames of folded stacks weigh themselves in the runs
                                     `base` and `new`, by the frame that called them.
          gpu.device_tasks           (view) Kernels, copies, memsets and graphs on streams; waits are no
                                     work.
          gpu.devices                (view) How long each device was busy, and with what.
          gpu.stream_waits           (view) What streams waited for in the gaps between their tasks: until
                                     the next one was launched for the host, from then on for its start
                                     (under 30 µs, sooner the device could hardly have begun), for the call
                                     that launched it (until the task began or longer: a queue was full, a
                                     module was loaded) or for something else. A gap has up to two rows.
          graph.sizes                (view) How large the graph of a run's tasks is; every task counts as
                                     one step.
          hta.ranks                  (view) Every location of the program that is no asynchronous one, with
                                     its rank.
          hta.spans                  (view) The rows that HTA keeps: spans with a category, rounded as it
                                     does where the times of a rank have decimals.
          hta.events                 (view) The spans with what HTA's trimming asks: with two or more steps
                                     of the profiler it keeps the host's spans that start before the last
                                     one, and what those launched.
          hta.device_spans           (view) What HTA keeps of the devices' spans, waits of `cuda_sync` among
                                     them, a row for each call that launched it.
          hta.first_spans            (view) The first task of each rank whose file begins with a span: HTA
                                     takes its row for that of no correlation.
          pascal.program_efficiency  (view) Times and efficiencies of each study's whole program, or where
                                     that was not measured, of the region that took most time: a row for
                                     each problem size and number of cores.
        `tq tables NAME` lists the columns of one.
        --- exit 0
    "#]]);
    for command in
        ["functions", "functions busy", "functions critical_path", "functions ABS", "formats", "formats tfprof"]
    {
        let answer = place.tq(command);
        assert_eq!((answer.status, answer.stderr.as_str()), (Some(0), ""), "{command}");
        assert!(answer.stdout.lines().count() > 2, "{command}: {}", answer.stdout);
    }
}
