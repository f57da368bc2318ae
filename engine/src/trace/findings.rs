//! What `import_stats` can say: every word, how bad it is, who caused it, and what it means.
//!
//! This is the one place that knows the words. A reader takes a [`Finding`] from here and cannot make its own; one word has
//! one severity and one stage. `tq tables import_stats`, the table `docs.findings` and the last part of `docs/tables.md`
//! are generated from here.

use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the answer is what the trace says.
    Info,
    /// Something was wrong and was put right in the way the example says.
    Repaired,
    /// Something of the recording is missing from the tables.
    Lost,
}

/// Who caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The trace came so.
    Recording,
    /// `tq` did it: a time slice, rounding, a join that found nothing.
    Import,
}

impl Severity {
    /// As `import_stats.severity` has it.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Repaired => "repaired",
            Severity::Lost => "lost",
        }
    }
}

impl Stage {
    /// As `import_stats.stage` has it.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Recording => "recording",
            Stage::Import => "import",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A kind of finding. `what` is one snake_case word that queries can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Its name in `import_stats.what`.
    pub what: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Who caused it.
    pub stage: Stage,
    /// What it means, for users. Private, so that findings are made only here.
    meaning: &'static str,
}

impl Finding {
    /// What it means, and what happens to the rows, in one sentence or two.
    pub fn meaning(&self) -> &'static str {
        self.meaning
    }

    /// The finding that a store calls so; one that this version does not know is made of what the store says, its words kept by
    /// `keep`.
    pub(crate) fn stored(what: &str, severity: Severity, stage: Stage, keep: impl Fn(&str) -> &'static str) -> Finding {
        let known = GROUPS
            .iter()
            .flat_map(|group| group.findings)
            .find(|finding| finding.what == what && finding.severity == severity && finding.stage == stage);
        known.copied().unwrap_or_else(|| Finding { what: keep(what), severity, stage, meaning: "" })
    }
}

/// The findings of a format, or of what all of them share.
#[derive(Debug)]
pub struct Group {
    /// The name of the format, or [`ANY`], or [`SEVERAL`].
    pub formats: &'static str,
    /// In the order of the words.
    pub findings: &'static [Finding],
}

/// Found in tables of any format.
pub const ANY: &str = "any";
/// Found by several readers.
pub const SEVERAL: &str = "several";

/// `NAME "name" severity stage "meaning";` by group: a constant each, and [`GROUPS`], which holds all of them.
macro_rules! findings {
    ($($formats:tt { $($name:ident $what:literal $severity:ident $stage:ident $meaning:literal;)* })*) => {
        $($(
            #[doc = $meaning]
            pub const $name: Finding =
                Finding { what: $what, severity: Severity::$severity, stage: Stage::$stage, meaning: $meaning };
        )*)*
        /// All findings, those that are shared first.
        pub static GROUPS: &[Group] = &[$(Group { formats: $formats, findings: &[$($name),*] }),*];
        /// The names of the constants, in the same order.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($(stringify!($name)),*),*];
    };
}

findings! {
    ANY {
        ALIGNED "aligned" Info Import
            "Clocks that `--option align=messages` moved onto one; `runs.args` holds the offsets.";
        DAMAGED_STREAM "damaged_stream" Lost Recording
            "A compressed file that does not decode, breaks off, or has a wrong checksum; what was read before is there.";
        EXPORTED_BY_NSYS "exported_by_nsys" Info Import
            "A report that was read through the temporary database that `nsys export` made of it.";
        FILE_NOT_RECOGNISED "file_not_recognised" Info Import
            "Files of the directory that no format recognises; they were not read.";
        FINISH_BEFORE_START "finish_before_start" Repaired Recording
            "Tasks that end before they start: finish and duration are NULL.";
        NOT_ALIGNED "not_aligned" Info Import
            "`--option align=messages` found no message between two clocks with both times: nothing was moved.";
        OUTSIDE_TIME_SLICE "outside_time_slice" Info Import
            "Rows that lie outside of `--from` and `--to`; the example counts them by table.";
        RECEIVED_BEFORE_SENT "received_before_sent" Info Recording
            "Messages that arrive before they are sent, by the clocks of two locations; `--option align=messages` moves the clocks.";
        RECORDS_READ "records_read" Info Import
            "Records of the trace; each became a row or is counted under another word.";
        STARTED_BEFORE_PREDECESSOR "started_before_predecessor" Info Recording
            "Tasks that start before a predecessor on another clock has finished; `--option align=messages` moves the clocks.";
        TIME_IS_NULL "time_is_null" Repaired Recording
            "A cell that is no time, or a time beyond ±2^62 ticks: the row is there, the time is NULL.";
        TIME_TOO_LARGE "time_too_large" Repaired Import
            "A time that left the reach of ±2^62 ticks when it was converted, or moved onto another clock: it is NULL.";
        TRUNCATED "truncated" Lost Recording
            "The trace ends in the middle, as after a crash or a full disk; what is whole is there.";
        UNACCOUNTED "unaccounted" Lost Import
            "Records that became no row and are counted under no other word: a fault of the reader, please report it.";
        WAL_IGNORED "wal_ignored" Lost Import
            "Changes in the `-wal` file of an SQLite database that were not read: no copy could be made, or it lies elsewhere.";
        WAL_READ "wal_read" Info Import
            "Changes that only the `-wal` file of an SQLite database holds; they were read in a temporary copy.";
    }
    SEVERAL {
        ARGS_TOO_LONG "args_too_long" Lost Import
            "Arguments of one block or stream beyond 2 GiB: those behind are NULL.";
        BAD_LINES "bad_lines" Lost Recording
            "Lines that are none of the file's kind; they became no row.";
        BAD_STRING "bad_string" Repaired Recording
            "A JSON string with raw control characters, unknown escapes or half a character: read as the example says.";
        BAD_TIME "bad_time" Lost Recording
            "Records without a usable time (no number, or out of range): they became no row.";
        BAD_VALUE "bad_value" Lost Recording
            "A cell that is no number or no time: NULL; the format `table` keeps its text in `args`.";
        COLUMN_MISSING "column_missing" Lost Recording
            "A table of the trace lacks a column that other versions have: what it would fill is NULL.";
        DOT_NODES_JOINED "dot_nodes_joined" Info Import
            "Nodes of the graph that were found among the tasks; they are no rows of their own.";
        DUPLICATE_ID "duplicate_id" Info Recording
            "Tasks whose id another one had before; parents and links mean the first.";
        DUPLICATE_KEY "duplicate_key" Repaired Recording
            "A key that stands twice in one JSON object: the last value counts.";
        END_EVENTS "end_events" Info Import
            "Events that end a task; they give it its finish and are no rows.";
        NEGATIVE_DURATION "negative_duration" Repaired Recording
            "A duration below 0, or an end before its start: read as 0.";
        NO_EVENTS "no_events" Info Recording
            "The trace holds no events.";
        NO_TASKS "no_tasks" Info Recording
            "The trace holds no tasks.";
        NOT_UTF8 "not_utf8" Repaired Recording
            "Text that is no UTF-8: what could not be read became `U+FFFD`.";
        OVERLAP "overlap" Info Recording
            "Tasks of one lane that overlap and do not nest: depth is NULL where nothing can be said.";
        ROUNDED "rounded" Info Import
            "Times finer than a tick, rounded half to even.";
        TABLE_NOT_READ "table_not_read" Info Import
            "A table of the database that `tq` does not know; it was not read.";
        UNFINISHED "unfinished" Info Recording
            "Tasks that begin and never end: finish is NULL.";
        UNMATCHED_END "unmatched_end" Lost Recording
            "Ends for which nothing is open; they became no row.";
    }
    "actorprof" {
        BLANK_LINES "blank_lines" Info Recording
            "Empty lines.";
        CRLF_LINES "crlf_lines" Info Recording
            "Lines that end in CR LF.";
        DUPLICATE_FILE "duplicate_file" Lost Recording
            "A second file of one PE and phase; it was not read.";
        EMPTY_FILE "empty_file" Info Recording
            "Files without a byte, as a run leaves that was killed.";
        LINES_WITHOUT_BLANKS "lines_without_blanks" Info Recording
            "Lines without the blanks behind commas that ActorProf writes.";
        MAIN_LINES "main_lines" Info Import
            "The MAIN lines of PAPI files; they became counters.";
        MESSAGES_WITHOUT_TIME "messages_without_time" Info Recording
            "Sends of a version of ActorProf that writes no times: `send_time` is NULL.";
        MISSING_FILE_FOR_KNOWN_PE "missing_file_for_known_pe" Info Recording
            "PEs that other files name and that have no file of a kind that other PEs have.";
        MIXED_RUNS "mixed_runs" Repaired Recording
            "Files whose stamps lie far apart: some may be left over from another run. Remove them, or open the files of one run.";
        NEGATIVE_CYCLES "negative_cycles" Repaired Recording
            "Cycles that were printed without their sign, as 2^64 minus something; they are negative again.";
        NODE_CONFLICTS "node_conflicts" Repaired Recording
            "PEs that are said to be on several nodes; each keeps that of its own file.";
        OTHER_LINES "other_lines" Info Recording
            "Lines that others wrote between those of ActorProf.";
        OTHER_PE_THAN_THE_FILES "other_pe_than_the_files" Repaired Recording
            "Lines that speak of another PE than the name of their file.";
        OVERALL_LINES "overall_lines" Info Import
            "Lines of `overall.txt`; they became counters.";
        PHASES_FAR_APART "phases_far_apart" Info Recording
            "Phases between which far more time passed than any of them took: one may be left over from another run.";
        RELATIVE_LINES "relative_lines" Info Import
            "Lines of relative cycles; they became counters where a PE has no absolute line.";
        TIME_STEPS_BACKWARDS "time_steps_backwards" Info Recording
            "Stamps that lie before the one of the line above.";
        TORN_LINES "torn_lines" Lost Recording
            "Last lines without their end, and lines that break off; they became no row.";
        TORN_PIECES "torn_pieces" Lost Recording
            "Lines of `physical.txt` that several PEs wrote into each other; they became no row.";
        TOTAL_DIFFERS_FROM_FINISH "total_differs_from_finish" Info Recording
            "Warnings of ActorProf that a total was printed before the selector had finished.";
        TRAILING_COMMA_LINES "trailing_comma_lines" Info Recording
            "Lines that end in a comma.";
    }
    "chrome" {
        ARGS_REPAIRED "args_repaired" Repaired Recording
            "Arguments that were no valid JSON, put right.";
        BAD_COUNTER "bad_counter" Lost Recording
            "A counter without values, or a value of one that is no number.";
        BAD_EVENT "bad_event" Lost Recording
            "An event that cannot be read; its neighbours are there.";
        BASE_TIME_MISSING "base_time_missing" Repaired Recording
            "Some ranks of a directory have a base time and others have none: no clock was shifted.";
        BROKEN_CONTAINER "broken_container" Lost Recording
            "What follows the events is no JSON, or holds more arrays of events than are read.";
        BROKEN_HEADER "broken_header" Repaired Recording
            "What stands before the events is no JSON; it was stepped over.";
        CLOCK_SYNC "clock_sync" Info Import
            "Events that synchronise the clocks of several traces (`c`); they are no rows.";
        COMMA_MISSING "comma_missing" Repaired Recording
            "Events without a comma between them.";
        COMMA_TOO_MANY "comma_too_many" Repaired Recording
            "Commas without an event between them.";
        DECLARED_LEFT_OUT "declared_left_out" Repaired Recording
            "Parents that `tq` wrote into the trace and that do not fit its tasks any more: the parents by time count.";
        END_MISSING "end_missing" Repaired Recording
            "Tasks without an `E` whose thread goes on behind the task around them: they end with that one.";
        FLOW_ARGS_LEFT_OUT "flow_args_left_out" Info Import
            "Arguments of `s`, `t` and `f`: links have none.";
        FLOW_EVENTS "flow_events" Info Import
            "Events `s`, `t` and `f`; pairs of them became links.";
        FLOW_SAME_AS_LAUNCH "flow_same_as_launch" Info Import
            "Flows that say what arguments say: one link stands for both.";
        FLOW_UNBOUND "flow_unbound" Info Recording
            "Flows without a start, without an end, or without a task where they point: no link.";
        FLOW_WITHOUT_ID "flow_without_id" Lost Recording
            "Flows without an id, which belong to nothing.";
        HEADER_LEFT_OUT "header_left_out" Info Import
            "Keys beside the events that are too long, or too many, to be kept in `runs.args`.";
        LAUNCH_AMBIGUOUS "launch_ambiguous" Info Recording
            "Kernels whose correlation calls of several processes share.";
        LINK_IDS "link_ids" Info Import
            "Events that link ids across processes (`=`); they are no rows.";
        METADATA_EVENTS "metadata_events" Info Import
            "Events that name and order processes and threads (`M`); they describe locations.";
        MISSING_ID "missing_id" Repaired Recording
            "Asynchronous events without an id: paired by process, category and name.";
        MISSING_TIME "missing_time" Lost Recording
            "Events without `ts`, or complete ones without any time; they became no row.";
        NO_CONTAINER "no_container" Repaired Recording
            "Events without a bracket around them.";
        NO_PHASE "no_phase" Lost Recording
            "Objects without `ph`; they became no row.";
        PYTHON_PARENT_CYCLE "python_parent_cycle" Repaired Recording
            "Python functions that are their own callers; their parents are those by time.";
        PYTHON_PARENT_UNKNOWN "python_parent_unknown" Info Recording
            "A `Python parent id` that no function has; the parent by time counts.";
        SEVERAL_CONTAINERS "several_containers" Repaired Recording
            "Arrays and objects of events behind the end of the first, read as if they were one.";
        TRAILING_COMMA "trailing_comma" Info Recording
            "A comma behind the last event.";
        UNKNOWN_PHASE "unknown_phase" Lost Recording
            "Events whose `ph` is none; they became no row.";
        VALUE_ROUNDED "value_rounded" Info Import
            "Whole numbers of counters that no DOUBLE holds.";
        WRONG_TYPE "wrong_type" Repaired Recording
            "A name, id or category that is an array or an object; it joins the arguments.";
    }
    "daisen" {
        BAD_ROW "bad_row" Lost Recording
            "Lines of a CSV with fewer fields than 7, or without an end; they became no row.";
        COMMA_IN_ACTION "comma_in_action" Repaired Recording
            "Lines of a CSV with a comma in the column `what`, which Akita does not quote.";
        DANGLING_PARENT "dangling_parent" Info Recording
            "Tasks whose parent is not in the trace: parent is NULL.";
        EVENT_WITHOUT_TASK "event_without_task" Info Recording
            "Milestones and tags whose task is not in the trace: `events.task` is NULL.";
        NEVER_STARTED "never_started" Info Recording
            "Rows without kind, action and location, which Akita leaves of tasks that ended without a start; they became no row.";
        OUTLIVES_PARENT "outlives_parent" Info Recording
            "Tasks that end after their parent.";
        OWN_PARENT "own_parent" Repaired Recording
            "Tasks that are their own parent: they have none here.";
        STARTS_BEFORE_PARENT "starts_before_parent" Info Recording
            "Tasks that begin before their parent.";
        UNIT_GUESSED "unit_guessed" Info Import
            "Ids and times disagree about the unit: `--option daisen.unit=s|ps` says it.";
        UNKNOWN_LOCATION "unknown_location" Repaired Recording
            "Tasks whose location has no name; its number stands for it.";
        ZERO_DURATION "zero_duration" Info Recording
            "Tasks that end when they begin.";
    }
    "folded" {
        NO_LINE_END "no_line_end" Info Recording
            "A last line without its end: it was read, but its weight may have been cut.";
        STACK_LINES "stack_lines" Info Import
            "Lines that became tasks, or lengthen those of the line before.";
        WEIGHTS_AS_TICKS "weights_as_ticks" Info Import
            "Lines whose weights stand as lengths: 1 is a tick, whatever was counted. `--option folded.unit=us` says another.";
    }
    "nsys" {
        AMBIGUOUS_CORRELATION "ambiguous_correlation" Repaired Recording
            "Work on a device whose correlation several processes have, and that does not say whose it is: the last call counts.";
        DIAGNOSTIC "diagnostic" Info Recording
            "Warnings and errors that Nsight Systems wrote into the report.";
        EVENTS_DROPPED "events_dropped" Lost Recording
            "Messages of Nsight Systems that speak of lost or dropped events.";
        LAUNCHED_BEFORE "launched_before" Info Recording
            "Work on a device without the call that launched it, which was before the recording: no link.";
        NO_START "no_start" Lost Recording
            "Rows without a start; they became no task.";
        NO_THREAD "no_thread" Repaired Recording
            "Rows without a thread: they stand on thread 0.";
        NVTX_NAMES "nvtx_names" Info Import
            "NVTX events that name domains, categories and threads; they are no rows.";
        TABLE_DAMAGED "table_damaged" Lost Recording
            "A table of the database that breaks off; the rows before are there.";
        TABLE_MISSING "table_missing" Info Recording
            "A table that is not there, since its data was not collected (`nsys profile --trace`).";
        TABLE_VARIANT "table_variant" Info Recording
            "A table under another name than usual, which was read all the same.";
        UNKNOWN_EVENT_TYPE "unknown_event_type" Lost Import
            "NVTX events of a type that `tq` does not know; they became no row.";
        UNKNOWN_STRING "unknown_string" Repaired Recording
            "Ids of names that the table of strings lacks: named `[string ID]`.";
    }
    "parsec" {
        BLOCK_DAMAGED "block_damaged" Lost Recording
            "A block that does not hold the records that it counts; those before are there.";
        BLOCK_TYPE "block_type" Repaired Recording
            "A block of another type than its chain, read as the chain says.";
        CHAIN_BROKEN "chain_broken" Lost Recording
            "A chain of blocks that leads out of the file: it was cut or damaged.";
        CHAIN_CYCLE "chain_cycle" Lost Recording
            "A chain of blocks that leads back into itself.";
        CLOCK_STEPPED_BACK "clock_stepped_back" Info Recording
            "Events in front of which the clock of their stream stepped back. All are kept; PaRSEC's own reader leaves them out.";
        CONVERTED_NOT_READ "converted_not_read" Info Import
            "Converted files beside what they were converted from; they were not read.";
        COUNTER_EVENTS "counter_events" Info Import
            "Readings of hardware counters; they became counters.";
        COUNTER_WITHOUT_VALUE "counter_without_value" Lost Recording
            "Readings of memory or hardware counters that hold no value.";
        DICTIONARY_INCOMPLETE "dictionary_incomplete" Lost Recording
            "Fewer types of events than the header counts.";
        DOT_BAD_LINE "dot_bad_line" Lost Recording
            "Lines of a graph that are neither node nor edge.";
        DOT_CLASS_MISMATCH "dot_class_mismatch" Info Recording
            "Nodes with the ids of events of another class, which were not joined: the graph is of another run or program.";
        DOT_DATA "dot_data" Info Import
            "Nodes and edges of data collections, which are no tasks.";
        DOT_NAME_CUT "dot_name_cut" Lost Recording
            "Edges whose end was cut off and begins the names of several nodes, or of none.";
        DOT_NAME_SHARED "dot_name_shared" Info Recording
            "Nodes of one name in the graphs of several ranks: a task of each.";
        DOT_NODE_REPEATED "dot_node_repeated" Info Recording
            "Nodes that stand there again.";
        DOT_NODES_OF_ONE_ID "dot_nodes_of_one_id" Info Recording
            "Nodes of one id, since hashes of the program collide: executions are told apart by parameters and threads.";
        DOT_ONLY "dot_only" Info Recording
            "Nodes without an event: tasks without times, of a missing rank, a killed run, or without the task profiler.";
        DOT_RANK_MISMATCH "dot_rank_mismatch" Info Recording
            "Tasks that ran on another rank than the file of their node says.";
        DOT_UNCLOSED "dot_unclosed" Info Recording
            "A graph without its closing brace: the run was killed, or still wrote.";
        DOT_UNDECLARED "dot_undeclared" Info Recording
            "Tasks that only edges name: the graph of their rank is missing, or they never ran.";
        DOT_UNDECLARED_FOUND "dot_undeclared_found" Info Import
            "Names that are no nodes, whose executions were found by their parameters.";
        EVENTS_MISSING "events_missing" Lost Recording
            "Streams that hold another number of events than they say.";
        EXECUTED_AGAIN "executed_again" Info Recording
            "Executions of a task that had run before, linked `again`.";
        FILE_NOT_READ "file_not_read" Lost Recording
            "A `.prof` file of a rank that is damaged, empty or none; the other ranks are there.";
        INFO_NOT_READ "info_not_read" Lost Recording
            "Infos of a converted trace that are of no known type, or belong to another event.";
        INFOS_MISSING "infos_missing" Lost Recording
            "Fewer facts about the run than the header counts.";
        LEFT_OUT_BY_CONVERTER "left_out_by_converter" Lost Recording
            "Events of a converted trace in front of which the clock stepped back: `profile2h5` did not pair them.";
        MESSAGE_WITHOUT_ENDS "message_without_ends" Lost Recording
            "Sends and receives that do not say between whom.";
        NOT_IN_DOT "not_in_dot" Info Recording
            "Tasks that were traced and are in no graph.";
        OTHER_RANKS_BESIDE "other_ranks_beside" Info Import
            "Files of other ranks that were not opened; open the directory to have all in one run.";
        PART_NOT_READ "part_not_read" Lost Recording
            "A part of a converted trace that is damaged; the others are there.";
        RANK_GIVEN_TWICE "rank_given_twice" Lost Recording
            "Two files of one rank: the last counts.";
        RANK_MISSING "rank_missing" Info Recording
            "Ranks that messages, numbers or graphs name and whose `.prof` file is not there.";
        RECEIVE_WITHOUT_SEND "receive_without_send" Info Recording
            "Messages whose sending was not recorded.";
        SEND_WITHOUT_RECEIVE "send_without_receive" Info Recording
            "Messages whose receiving was not recorded.";
        STREAM_RENUMBERED "stream_renumbered" Repaired Recording
            "Streams of a converted trace that are numbered in another way than they are listed.";
        STREAMS_LOST "streams_lost" Lost Recording
            "A list of streams that breaks off; their events were found without it, and have no names of streams.";
        UNKNOWN_KEY "unknown_key" Lost Recording
            "Events of a type that the dictionary lacks; they, and what follows in a block of them, became no row.";
        UNKNOWN_STREAM "unknown_stream" Lost Recording
            "Events of a converted trace whose stream is not listed; they became no row.";
        UNMATCHED_START "unmatched_start" Info Recording
            "Starts that never end: finish is NULL.";
    }
    "pascal" {
        BAD_CORES "bad_cores" Lost Recording
            "Measurements without a number of cores of 1 or more; they were left out.";
        BAD_KEY "bad_key" Lost Recording
            "Measurements whose key does not fit `data_descriptor`; they were left out.";
        BAD_RUN "bad_run" Lost Recording
            "Measurements, regions or samples that are none, or are there twice; they were left out.";
        EFFICIENCIES_ONLY "efficiencies_only" Info Recording
            "Regions of a file that has efficiencies and no times: see the counter `efficiency`.";
        ENTRIES_MERGED "entries_merged" Info Import
            "Entries of a region that continue each other, merged into pieces.";
        INPUT_BASE_GUESSED "input_base_guessed" Repaired Import
            "Numbers of inputs that fit counting from 0 and from 1: taken as counted from 0, which may be wrong.";
        MISSING_CONFIGURATION "missing_configuration" Info Recording
            "Configurations that other sizes or regions have: cells that need them are NULL.";
        NO_EXECUTIONS "no_executions" Lost Recording
            "No region has an execution with a time: there are no rows.";
        NOT_READ "not_read" Lost Import
            "Parts of a document that are of no known kind.";
        REGION_CLOCK "region_clock" Info Recording
            "Regions that lie outside of their run, since they have a clock of their own: the first starts at 0.";
        REGION_LINES "region_lines" Repaired Recording
            "Lines of a region that are not written `first, last`: read as two numbers, or as a name.";
        REGION_OCCURRENCES "region_occurrences" Info Recording
            "Regions that ran several times in a run: several tasks, whose time is the sum.";
        REPEATED_CONFIGURATION "repeated_configuration" Repaired Recording
            "A configuration that stands twice: it became another repetition.";
        SEVERAL_DOCUMENTS "several_documents" Info Recording
            "Several documents in one file: those behind the first became further repetitions.";
        SUSPICIOUS_VALUE "suspicious_value" Info Recording
            "Energies below 0, kept as they are.";
        UNKNOWN_INPUT "unknown_input" Repaired Recording
            "Inputs that the list of arguments lacks: named by their number.";
    }
    "table" {
        AMBIGUOUS_REFERENCE "ambiguous_reference" Lost Recording
            "References to a name that several tasks have: links are left out, other columns NULL.";
        BAD_RECORD "bad_record" Lost Recording
            "Lines of NDJSON that are no object; they became no row.";
        COLUMN_NOT_KEPT "column_not_kept" Info Import
            "Columns that no column of ours takes, of a table without `args`.";
        COLUMN_SUGGESTED "column_suggested" Info Import
            "Tasks without a name or a location, and columns that probably say it; `--option table.location=COLUMN` and the like map them.";
        DUPLICATE_LOCATION "duplicate_location" Lost Recording
            "A second row for one location, or one without a name; it became no row.";
        DURATION_DIFFERS "duration_differs" Info Recording
            "Durations that are not finish - start, which is taken.";
        END_ROWS "end_rows" Info Import
            "Rows that gave tasks their finish; they are no rows of their own.";
        END_VALUE_NOT_KEPT "end_value_not_kept" Lost Import
            "Ends that have another value than their begin in some column: the begin's stays.";
        ENDLESS_LINE "endless_line" Lost Recording
            "A line that does not end within 16 MiB; it became no row.";
        MISSING_END "missing_end" Lost Recording
            "Links without source or target; they became no row.";
        NAN_IS_NULL "nan_is_null" Info Recording
            "NaN in a column of numbers, as pandas writes NULLs: NULL.";
        NOT_FINITE "not_finite" Repaired Recording
            "NaN or Infinity: a text in JSON, null in `args` of Parquet and Arrow.";
        OTHER_PHASE "other_phase" Lost Recording
            "Rows that are neither begin nor end; they became no row.";
        OVERLAPPING_TASKS "overlapping_tasks" Info Recording
            "Tasks of a location that overlap and do not nest: no depth there.";
        RAGGED_LINE "ragged_line" Lost Recording
            "Lines of a CSV with another number of fields; they became no row.";
        ROLE_GUESSED "role_guessed" Info Import
            "Tasks whose name is a call of MPI, in a file without roles: `MPI_Wait` waits, `MPI_Send` communicates.";
        ROUNDED_TIME "rounded_time" Info Import
            "Times that are no whole number of ticks, rounded half to even.";
        ROUNDED_VALUE "rounded_value" Info Import
            "Whole numbers of 2^53 or more that no DOUBLE holds.";
        TEXT_BEHIND_QUOTE "text_behind_quote" Repaired Recording
            "`\"a\"x` in a CSV: read as `ax`.";
        TIME_UNIT_GUESSED "time_unit_guessed" Info Import
            "Times without a unit, and what they were taken as; `--option table.start=COLUMN:us` and the like say it.";
        UNKNOWN_REFERENCE "unknown_reference" Lost Recording
            "References to a task that is not there: links are left out, other columns NULL.";
        UNKNOWN_ROLE "unknown_role" Info Recording
            "Tasks with a role that no figure knows; it is kept.";
        UNTERMINATED_QUOTE "unterminated_quote" Lost Recording
            "A quote that never closes, or not within 16 MiB; its line became no row.";
    }
    "tfprof" {
        DOT_BESIDE_NOT_USED "dot_beside_not_used" Info Import
            "A graph beside the trace that could not be read, or is none: `--option tfprof.dot=FILE` names another.";
        DOT_EDGES_CONTRACTED "dot_edges_contracted" Info Import
            "Edges of modules, which leave no trace: what is inside of them has the edges.";
        DOT_EDGES_NOT_JOINED "dot_edges_not_joined" Lost Import
            "Edges with an end that is no task of the trace, or is several; they became no link.";
        DOT_EDGES_PARTLY_JOINED "dot_edges_partly_joined" Lost Import
            "Edges of which some ends were found; links stand for those.";
        DOT_JOIN_EDGES "dot_join_edges" Info Import
            "Edges from the end of a subflow to the task that it joins; they became no link.";
        DOT_MODULES_CONTRACTED "dot_modules_contracted" Info Import
            "Nodes of modules, which leave no trace.";
        DOT_NAMES_NOT_UNIQUE "dot_names_not_unique" Info Import
            "Nodes whose name others have, in the graph or in the trace; they were not joined.";
        DOT_NODES_WITHOUT_TASK "dot_nodes_without_task" Info Import
            "Nodes without a task of their name in the trace.";
        DOT_SPAWNS_NOT_JOINED "dot_spawns_not_joined" Info Import
            "Tasks of a subflow whose start from the task around them could not be linked.";
        DOT_STATEMENTS_NOT_UNDERSTOOD "dot_statements_not_understood" Lost Recording
            "Statements of a graph that `taskflow.dump()` does not write.";
        DOT_TRUNCATED "dot_truncated" Lost Recording
            "A graph that ends before its braces are closed.";
        EXECUTOR_COUNT_OVERWRITTEN "executor_count_overwritten" Repaired Recording
            "A `.tfp` file whose number of executors Taskflow's launcher `tfprof.py` has overwritten: they were counted.";
        EXECUTOR_WITHOUT_DATA "executor_without_data" Lost Recording
            "An executor without the key `data`: it has no tasks.";
        FOREIGN_KEY "foreign_key" Info Recording
            "Keys that are not Taskflow's, stepped over.";
        NAME_MAYBE_CUT "name_maybe_cut" Info Recording
            "Names of 31 bytes, which is all that TFPX keeps: they may have been longer.";
        NAME_NOT_UTF8 "name_not_utf8" Repaired Recording
            "Names that are no UTF-8: what could not be read became `U+FFFD`.";
        STACK_PARENTS_UNKNOWN "stack_parents_unknown" Lost Recording
            "Tasks that begin before the one in front of them, so that nesting around them cannot be told: no `stack_parent`.";
        TASK_IN_NAME "task_in_name" Repaired Recording
            "A task that begins inside of a name, where quotes were not escaped.";
        TYPES_GUESSED "types_guessed" Info Import
            "Numbers of types that two versions of Taskflow mean differently: `--option tfprof.types` says which.";
        UNKNOWN_TYPE "unknown_type" Repaired Recording
            "Types of tasks that Taskflow does not have: kind `undefined`.";
        WORKER_IN_NAME "worker_in_name" Lost Recording
            "A worker that begins inside of a name: the tasks behind it may stand under another worker.";
        WORKER_WITHOUT_DATA "worker_without_data" Lost Recording
            "A worker whose tasks lack the key `data`.";
        WORKER_WITHOUT_LEVEL "worker_without_level" Repaired Recording
            "A worker without a level, read as level 0.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_one_finding_in_the_order_of_words() {
        let words: Vec<&str> = GROUPS.iter().flat_map(|group| group.findings).map(|finding| finding.what).collect();
        let mut distinct = words.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), words.len());
        assert!(words.iter().zip(NAMES).all(|(word, name)| word.to_uppercase() == *name));
        for group in GROUPS {
            let formats = crate::importers::importers().iter().map(|importer| importer.doc().name);
            assert!(formats.chain([ANY, SEVERAL]).any(|format| format == group.formats), "{}", group.formats);
            assert!(group.findings.is_sorted_by_key(|finding| finding.what), "{}", group.formats);
            assert!(group.findings.iter().all(|finding| finding.meaning.ends_with(['.', ')'])));
        }
    }
}
