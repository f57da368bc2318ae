"""The functions over relations as methods. Written by `relations.py`."""

from __future__ import annotations

from typing import Optional

from ._calls import Calls, Relation
from ._result import Result


class Relations(Calls):
    """What a session can be asked without SQL. Inputs that are left out are those of the whole session."""

    def ancestors(self, of: Relation, tasks: Optional[Relation] = None) -> Result:
        """The tasks above given ones: parent, parent of the parent, and so on. The column `parent` gives the tree: in the table
        `tasks` it is the parent that the trace declares, else the task around it on its lane. To use only the latter, pass
        `(SELECT task, stack_parent AS parent, name FROM tasks)`; for tables without a parent pass `self_time(…)`, which computes
        it.

        Rows: one per task of `of` and task above it; `distance` is 1 for the parent. `of_task` is the task that was asked about;
        it is not among the answers. A task that is given twice is answered once; one that does not exist has no rows and is
        counted in a note. An `of` without `run` applies to every run.

        Units: `start`, `finish` and `duration` are those of the task, in ticks; `distance` is a number of steps.

        Nulls: a task whose parent is NULL is at the top, and so is one that is its own parent or whose parent does not exist; the
        latter two are counted in a note. Tasks without id are left out and counted.

        Ties: none.

        Errors: parents that form a circle (its tasks are named), a task that is there twice in a run.
        """
        return self._called("ancestors", {"tasks": tasks, "of": of}, {})

    def call_tree(self, tasks: Optional[Relation] = None) -> Result:
        """What the tasks of the lanes consist of, by name: one row per path of names from the outermost task inwards. A lane is one
        location of one run; paths of all lanes of a run are added up. For a tree per lane give the lane as the run:
        `call_tree((SELECT location AS run, location, task, name, start, finish FROM tasks))`.

        Rows: one per run and path. `node` counts from 0 in each run, depth first, names in order; `parent` is the node above
        (NULL at the top), `depth` how many there are. `count` is the number of tasks, `total_time` the sum of their durations,
        `self_time` the sum of their self times as the function `self_time` has them. `stack` are the names from the top down,
        joined by `;`: `SELECT stack || ' ' || self_time FROM call_tree(tasks) WHERE self_time > 0` are the folded stacks that
        flame-graph tools draw. For them a `;` in a name becomes `:`, a line break a blank, and a task without name `[unnamed]`;
        the column `name` has it as it is.

        Nesting is that of `self_time`: a task that crosses another has no parent and stands at the top, and the ticks of both are
        its own.

        Units: ticks.

        Nulls: a task without start is left out; one that never ended (finish NULL) counts, has no time, and encloses what
        follows. A task without location is left out. Each is counted in a note. NULL is a name of its own. A task that ends
        before it starts counts as empty.

        Ties: of equal spans the one with the smaller task is the outer one; without a column `task`, the one that comes first.

        Errors: a sum beyond BIGINT.
        """
        return self._called("call_tree", {"tasks": tasks}, {})

    def clock_offsets(self, messages: Optional[Relation] = None, locations: Optional[Relation] = None) -> Result:
        """How far apart the clocks of two locations are, as bounded by the messages between them.

        Rows: one per pair of clocks with messages between them. The offset is what `other` shows when `clock` shows 0. No message
        is received before it is sent, so a message from `clock` to `other` says that the offset is at most receive_time -
        send_time, and one back that it is at least send_time - receive_time: `upper` and `lower` are the best of these bounds,
        `estimate` lies in the middle between them, else (messages in one direction only) it is the offset nearest to 0 that the
        bound allows. `messages` go from `clock` to `other`, `messages_back` the other way; `impossible` of them are received
        before they are sent, as recorded. With `lower` above `upper` no offset explains all messages: a clock drifted or was set.
        `--option align=messages` moves the times of all clocks so that as few messages as possible stay impossible.

        Units: ticks in `lower`, `upper`, `estimate`; messages in the others.

        Nulls: a message without source, target, send_time or receive_time is left out and counted in a note. `lower` is NULL
        without messages back, `upper` without messages. A location without clock is a clock by itself.

        Ties: none.

        Errors: a difference of times beyond BIGINT.
        """
        return self._called("clock_offsets", {"messages": messages, "locations": locations}, {})

    def cluster_view(self, tasks: Optional[Relation] = None, *, limit: Optional[int] = None, from_: Optional[int] = None, to: Optional[int] = None) -> Result:
        """A picture of any number of tasks in at most `limit` segments: neighbours on a row are joined, those first that lie closest
        together. A row is one depth of one location.

        Rows: one per segment, per run. The tasks of a window closed at both ends are taken, start <= to and finish >= from; they
        are not cut. Each task of a row but the last has the key finish of the next one - its own start. The `limit` largest keys
        of a run stay, over all of its rows, the last tasks of rows before all others; every other task is joined with its right
        neighbour. So there are as many segments as tasks when they are few enough, and one per row when `limit` is below the
        number of rows. `start` is that of a segment's first task, `finish` that of its last, `count` how many there are. A
        segment of one task has its `name` and `kind`; others are called `(<count> tasks)` and `clustered`.

        Units: `start` and `finish` in ticks.

        Nulls: a task without start or finish is left out and counted in a note. NULL is a location and a depth of its own. A NULL
        window bound leaves that side open.

        Ties: of equal keys the one with the smaller task stays; without a column `task`, the one that comes first. Tasks of a row
        that start together are in the order of their finishes, then of tasks.

        Errors: a negative `limit`.
        """
        return self._called("cluster_view", {"tasks": tasks}, {"limit": limit, "from": from_, "to": to})

    def compare_runs(self, tasks: Optional[Relation] = None, *, base: Optional[str] = None, new: Optional[str] = None, by: Optional[str] = None) -> Result:
        """How each kind of work changed between runs: counts, total, median and busy times of two sides, and the change.

        Rows: one per text in the column `by`, without `run`. `key` is the text; `matched` says where it is: `both`, `base` or
        `new`. Per side: `count` tasks, `total` of their durations, `median` duration, `busy` time in which at least one of them
        ran. `change` is new_total - base_total, `change_percent` that as a share of base_total. A side may be several runs,
        repetitions of one measurement: its figures are then the medians over the runs, a run without such tasks counts as 0 (but
        in `median`). `p_value` is that of an exact two-sided permutation test on the medians of the totals, with at least three
        runs a side; three a side cannot fall below 0.2, five can fall to 0.048. Largest changes come first.

        Units: ticks; counts are numbers, change_percent is in percent. Medians between two ticks are rounded half to even, those
        of each run and then those over the runs.

        Nulls: tasks whose text is NULL are one group, NULL. Tasks without start or finish are left out and counted in a note. The
        figures of a side that has no such task are 0, its `median` NULL. change_percent is NULL when base_total is 0, p_value
        with fewer than three runs a side.

        Ties: changes of equal size by key.

        Errors: `base` or `new` names no run (`name` also names `name/1`, `*` stands for any text), a run is on both sides, `by`
        is no column of text, a total beyond BIGINT.
        """
        return self._called("compare_runs", {"tasks": tasks}, {"base": base, "new": new, "by": by})

    def component_metrics(self, tasks: Optional[Relation] = None, parents: Optional[Relation] = None, *, bins: Optional[int] = None, from_: Optional[float] = None, to: Optional[float] = None, rules: Optional[str] = None, second: Optional[int] = None) -> Result:
        """What the components of a simulated machine do over time: request rates, latency, concurrency and buffer pressure, as
        Daisen shows them. All metrics of all components come from one pass.

        Rows: one per location and bin, also where nothing happens. `req_in_count` is the rate at which requests arrive (tasks of
        kind `req_in` that start in the bin), `req_complete_count` that at which they are answered (that finish in it),
        `avg_latency` the mean duration of the latter. The others are means over the time of the bin: `concurrent_task` of the
        number of tasks, `pending_req_out` of tasks of kind `req_out`, `buffer_pressure` of requests that are sent but not yet
        accepted (from the start of the parent of a `req_in` to its own start), `request_buffer_pressure` and
        `response_buffer_pressure` of tasks of kind `incoming_buffer` whose name ends in `Req` or `Request`, and in `Rsp` or
        `Response`.

        Rules: `'plain'`: bins are half-open, edge `i` of `n` is from + floor(i · (to - from) / n), a location stands only for
        itself; a request without parent adds no pressure. `'v3'` is what the servers of Akita v3 and v4 answer: edges are floats
        of seconds, what happens exactly at one is in no bin, a request counts for `buffer_pressure` only when it overlaps the
        window itself, and one without parent waits since time 0; the two other pressures are NULL. `'v5'` is Akita v5: a location
        stands for all that is below its name (`L1` for `L1.Top`, with a row for each such scope), nothing is counted at the start
        of the window, `buffer_pressure` is NULL.

        Units: rates per second, `avg_latency` and `bin_start` in ticks (rounded down where an edge lies between two), the others
        are numbers of tasks. `second` is how many ticks a second has, by default those of the session.

        Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of one
        location, NULL. A NULL `from` is the first start of the run, a NULL `to` its last finish. `avg_latency` of no requests is
        NULL; in the other rules it is 0, as the servers say.

        Ties: none. A task without length counts in rates and latency only.

        Errors: `bins` below 1 or above 16777216, `to` before `from`, unknown rules, a task that is twice in `parents`.
        """
        return self._called("component_metrics", {"tasks": tasks, "parents": parents}, {"bins": bins, "from": from_, "to": to, "rules": rules, "second": second})

    def component_rows(self, tasks: Optional[Relation] = None, *, location: Optional[str] = None, rules: Optional[str] = None) -> Result:
        """The bars of Daisen's component view and task view: each task with its level and its row among the children of its parent.

        Rows: one per task of the picture, which has all tasks that are given, or those of one `location`. A task is a child of
        its parent when that is in the picture, else it is on `level` 1. `row` counts from 0 among the children of one parent, and
        among the tasks of level 1: tasks are placed in the order of their starts, each in the first row where it conflicts with
        none. Take a window by giving only the tasks that overlap it.

        Rules: `'plain'`: half-open, so tasks may touch and those without length share rows; the task chart of Daisen 2. `'v3'`:
        as `floating_row`, where a task without length needs room; the component view of Akita v3 and v4. `'v5'`: the component
        page of Akita v5: tasks without length are left out (level and row are NULL), a task takes its row until the last of its
        descendants has ended, and two or more tasks of level 1 that share a parent outside of the picture (or have none) stay
        together in neighbouring rows; `location` stands for all that is below its name.

        Units: `start` and `finish` in ticks; levels from 1, rows from 0.

        Nulls: a task without start or finish is left out and counted in a note. Without a column `parent` all tasks are on level
        1; `parent_id` tells parents apart that are no tasks. A NULL `location` takes every task that is given.

        Ties: tasks that start together are placed in the order of `task`; in `'plain'` the one that ends first before.

        Errors: unknown rules, a task that is there twice, tasks that are their own ancestors.
        """
        return self._called("component_rows", {"tasks": tasks}, {"location": location, "rules": rules})

    def concurrency(self, tasks: Optional[Relation] = None) -> Result:
        """How many tasks run, as a step function of time: one row for each change.

        Rows: per run, one for each tick at which the number changes: from `time` on, `running` tasks run, until the next row. The
        first row is the first start, the last one has 0. Nested tasks count each: take `depth = 0` to count lanes. A task that
        starts where another ends changes nothing.

        Units: `time` in ticks.

        Nulls: a task whose start or finish is NULL is left out and counted in a note. Tasks without length run at no tick, nor do
        those that end before they start.

        Ties: all changes of a tick are one row, or none when they cancel out.

        Errors: none.
        """
        return self._called("concurrency", {"tasks": tasks}, {})

    def critical_path(self, tasks: Optional[Relation] = None, links: Optional[Relation] = None, *, break_weak: Optional[bool] = None) -> Result:
        """The longest chain of durations through the links, per run: no schedule can be shorter, however many workers there are.

        Rows: one per task of the chain, `step` counts from 0 in the order in which they run. `path_time` is the running total of
        the durations; waiting between tasks does not count. Inputs: given ones are taken as they are, links of every kind. An
        omitted `links` is the `dependency` rows of `links`; an omitted `tasks` the tasks of `tasks` at the ends of the links.
        When `links` is omitted and a run has no dependency, it has no rows, and a note says so.

        Units: ticks.

        Nulls: a NULL duration counts as 0; tasks without id and links without source or target are left out. Links to tasks that
        are not there are left out. Each is counted in a note.

        Ties: among chains of equal length the one with the smallest last task, before it the smallest predecessor, and so on. A
        predecessor of path time 0 belongs to the chain, one of negative path time does not.

        Errors: a cycle (its tasks are named), a task that is there twice in a run, a path time beyond BIGINT. With `break_weak =>
        true`, links of kind `weak` that lie on a cycle are left out and counted; a cycle of other links remains an error.
        """
        return self._called("critical_path", {"tasks": tasks, "links": links}, {"break_weak": break_weak})

    def descendants(self, of: Relation, tasks: Optional[Relation] = None) -> Result:
        """The tasks below given ones: children, children of the children, and so on. The column `parent` gives the tree: in the
        table `tasks` it is the parent that the trace declares, else the task around it on its lane. To use only the latter, pass
        `(SELECT task, stack_parent AS parent, name FROM tasks)`; for tables without a parent pass `self_time(…)`, which computes
        it.

        Rows: one per task of `of` and task below it; `distance` is 1 for a child. `of_task` is the task that was asked about; it
        is not among the answers. A task that is given twice is answered once; one that does not exist has no rows and is counted
        in a note. An `of` without `run` applies to every run.

        Units: `start`, `finish` and `duration` are those of the task, in ticks; `distance` is a number of steps.

        Nulls: a task whose parent is NULL is at the top, and so is one that is its own parent or whose parent does not exist; the
        latter two are counted in a note. Tasks without id are left out and counted.

        Ties: none.

        Errors: parents that form a circle (its tasks are named), a task that is there twice in a run.
        """
        return self._called("descendants", {"tasks": tasks, "of": of}, {})

    def efficiency_diffs(self, executions: Optional[Relation] = None, *, method: Optional[str] = None) -> Result:
        """How efficiently a program uses cores, and how that changes when the problem grows, when cores are added, and when both
        happen: the figures of a scalability study, per region.

        Rows: per study and region one for each problem size and number of cores that occurs in the study; without an execution
        its figures are NULL. The base is the fewest cores that ran the region and size, `efficiency` = base cores × time on them
        ÷ (cores × time). `ratio_of_medians` takes the median of the times of all repetitions first; `median_of_ratios` divides
        within each repetition and takes the median of the efficiencies (PaScal Viewer); a repetition without the base has none.
        The median of an even number is the mean of the middle two; `time` shows it in whole ticks, efficiencies are of the exact
        one. `diff_size` is efficiency - that of the next smaller size on as many cores, `diff_cores` - that of the next fewer
        cores for the same size, `diff_both` - that of both smaller. So a program is scalable where `diff_size` >= 0, strongly
        where `diff_cores` >= 0, weakly where `diff_both` >= 0. Sizes are in the order of `size_order`; without it of `argument`,
        as numbers where all are.

        Units: `time` is the median, as `executions` has it; efficiencies and differences are ratios. `run` is the column `study`
        of the executions, which are compared within one study only; without that column all are one.

        Nulls: an execution without a time or cores above 0 is left out and counted in a note. NULL is a region and a size of its
        own, and a NULL repetition is one of its own. Differences to a cell without executions are NULL.

        Ties: none; several times of one repetition count as their median.

        Errors: another `method`, more than 16777216 cells.
        """
        return self._called("efficiency_diffs", {"executions": executions}, {"method": method})

    def executed_path(self, tasks: Optional[Relation] = None, links: Optional[Relation] = None, messages: Optional[Relation] = None) -> Result:
        """What the end of a run really waited for: the chain of work and waiting that fills the time from its first start to its
        last finish.

        Rows: one per step, `step` counts from 0 in the order in which they ran. `start` and `finish` bound the piece of the task
        that is on the path, `running` is its length, `wait` the time between the step before and this piece. All `wait` and
        `running` of a run add up to its makespan exactly. `cause` says what released the step: the kind of the link that leads
        from the step before (`link` when it has none), `message` when that step sent one, `lane` when it is what the location did
        before, `work` when another location worked meanwhile, `begin` for the first step.

        The walk goes backwards from the last finish, over the innermost task of each location. Where a task begins, it goes to
        the latest release that is not after the start: a predecessor's finish by links of every kind but `weak` and `flow`, the
        arrival of a message to the task, or the finish of what ran before on the location. A predecessor that runs longer is cut
        at the start; how many were is said in a note. A link of kind `sync` whose source finishes while the target runs releases
        the target there: the target is a wait. So does a message that arrives while a task of role `wait` or `communication`
        runs. A task of role `wait` that nothing of this released ends with the work that finished last on another location while
        it ran (`work`; of the same rank where names of locations begin with one, `rank 1/4037/7`), and so do waits that follow
        all work of the run, such as those of a thread that polls; where a location that the path entered so has nothing before,
        the path goes back to the one that waited. A wait for a message begins when the message was sent. A task that is covered
        by a nested one where the path enters it is a step of length 0. Inputs: given ones are taken as they are; omitted ones are
        the tables.

        Units: ticks.

        Nulls: tasks whose start or finish is NULL, links and messages without a task at an end are left out and counted in a
        note. A task without location is on no lane. A message without one of its times has the other one for both.

        Ties: link, then message, then lane; then the smallest task. The path ends with the smallest of the tasks that finish
        last.

        Errors: a task that is there twice in a run, a makespan beyond BIGINT, a time of -9223372036854775808.
        """
        return self._called("executed_path", {"tasks": tasks, "links": links, "messages": messages}, {})

    def explain_change(self, tasks: Optional[Relation] = None, links: Optional[Relation] = None, messages: Optional[Relation] = None, *, base: Optional[str] = None, new: Optional[str] = None) -> Result:
        """Why a run took longer or shorter than another: the difference of their makespans, by what their executed paths spent.

        Rows: per name of tasks on either path up to two, without `run`. `cause` is `work` for time in which tasks of that name
        ran on both paths, `path` when the name is on one of the paths alone (the run took another way), `waiting` for the waits
        before tasks of that name. `base` and `new` are what each path spent, `change` is new - base. All `change` add up to the
        difference of the makespans exactly, and every one is the negative of what it is with the runs exchanged. See
        `executed_path` for what is on a path; where only one of the runs has links, they are left out, and a note says so.
        Largest changes come first.

        Units: ticks.

        Nulls: tasks without name are one name, NULL. Else as in `executed_path`.

        Ties: as in `executed_path`; changes of equal size by name, then cause.

        Errors: `base` or `new` names no run or several (`*` in it stands for any text), a makespan beyond BIGINT, a time of
        -9223372036854775808.
        """
        return self._called("explain_change", {"tasks": tasks, "links": links, "messages": messages}, {"base": base, "new": new})

    def floating_rows(self, tasks: Optional[Relation] = None) -> Result:
        """The row of a Gantt chart in which each task is drawn: the first one of its location, from 0, whose tasks it does not
        overlap. It is what the window function `floating_row` gives for `PARTITION BY run, location ORDER BY start, finish DESC`,
        with memory that does not grow with the tasks of a store.

        Rows: one per task; those of a location come in the order of start, longer ones first. Without a column `location`, all
        tasks of a run are those of one location. Touching tasks share a row; one without length is a mark, which may not touch
        the end of a task placed before it, and nothing else may start where it is.

        Units: `start` and `finish` in ticks; `row` counts from 0.

        Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of one
        location, NULL. A task that ends before it starts counts as a mark.

        Ties: of tasks of equal start and finish the smaller one is placed first; without a column `task`, the one that comes
        first.

        Errors: as many as 4294967295 tasks of one location at a time.
        """
        return self._called("floating_rows", {"tasks": tasks}, {})

    def gaps(self, tasks: Optional[Relation] = None, *, from_: Optional[int] = None, to: Optional[int] = None, ends: Optional[bool] = None) -> Result:
        """The idle intervals of each location: where nothing runs between its first start and its last finish. Without a column
        `location`, all tasks of a run are on one.

        Rows: one per gap, as long as it can be. `task_before` ran last before it, `task_after` runs first after it. With `from`
        and `to` the gaps of that window are given: also the one before the first and after the last task, where `task_before` or
        `task_after` is NULL; longer ones are cut at the borders. `ends` takes for a side without a bound that of the run, from
        the first start to the last finish of all its tasks with a location: what a location waited for its first task and after
        its last one. Only locations with tasks are known: join `locations` to see those that never ran. A task without length
        runs at no tick: it neither ends nor splits a gap.

        Units: ticks.

        Nulls: a task without location, start or finish is left out; each is counted in a note. A task that ends before it starts
        counts as empty, and empty tasks bound no gap. A NULL window bound leaves that side to the tasks.

        Ties: of tasks that finish together, `task_before` is the one that started first; of tasks that start together,
        `task_after` is the one that finishes last; then the one with the smaller task.

        Errors: a gap beyond BIGINT, `to` before `from`.
        """
        return self._called("gaps", {"tasks": tasks}, {"from": from_, "to": to, "ends": ends})

    def intersect(self, a: Relation, b: Relation, *, by: Optional[str] = None) -> Result:
        """The intervals in which a span of `a` and a span of `b` overlap on a location.

        Rows: one per pair of spans that meet, [later start, earlier finish), with the task of `a` (`task`) and that of `b`
        (`other_task`). The spans of an input may overlap each other: then a tick is in several pieces. Spans meet on the same run
        and location; with `by` on the same `name`, `kind`, `role` or `process` instead, with `by => 'run'` wherever they are. An
        input without that column is everywhere (windows of time need no location), one without `run` in every run. `location` is
        that of `a`, or that of `b` when `a` has none. Touching is not meeting. A span without length is a mark: it meets the
        spans that it lies in, their start included, and marks at the same tick.

        Units: ticks.

        Nulls: spans whose start, finish or column `by` is NULL meet no others; each is counted in a note. Where only one input
        has that column, it is ignored. Those that end before they start count as marks at their start.

        Ties: none; every pair is a row.

        Errors: a piece longer than BIGINT, an unknown `by`.
        """
        return self._called("intersect", {"a": a, "b": b}, {"by": by})

    def message_matrix(self, messages: Optional[Relation] = None, locations: Optional[Relation] = None) -> Result:
        """Who sends how much to whom: messages and bytes for every pair of locations, also those that never sent or received.

        Rows: per run that has messages, one for each source and target among its `locations` and the ends of its messages.
        `count` is the number of messages (the sum of the column `count`, where a row stands for several), `bytes` their size,
        `source_total` the number of messages that the source sends to all, `target_total` the number that the target receives
        from all. Give the locations that can send: `(SELECT * FROM locations WHERE kind = 'pe')`; with `(SELECT * FROM locations
        WHERE false)` only the ends of messages are included. A `locations` without `run` is for every run.

        Units: bytes in `bytes`, messages in the others.

        Nulls: a message without source or target is left out and counted in a note. A NULL `count` is one message, NULL `bytes`
        are 0.

        Ties: none.

        Errors: more than 67108864 pairs in a run, a sum beyond BIGINT.
        """
        return self._called("message_matrix", {"messages": messages, "locations": locations}, {})

    def overview(self, tasks: Optional[Relation] = None, *, bins: Optional[int] = None, from_: Optional[int] = None, to: Optional[int] = None, rows: Optional[int] = None) -> Result:
        """What a Gantt chart shows where its tasks are too short to be drawn: for each location, row of the chart and interval of
        time (bin), how many tasks there are, how long one of them runs, and which name takes most. It is what `tq view` draws.

        Rows: one per location, row and bin with a task. `row` is that of `floating_row` over the tasks of the location in the
        order of start, longer ones first: tasks of a row never overlap. Bins are those of `timeline`. A task counts in every bin
        that it touches; one without length in the bin of its tick (in the last bin where that is `to`). `name` is the one with
        most time in the bin.

        Units: `bin_start`, `bin_finish`, `busy` and `name_busy` in ticks; `row` and `bin` count from 0.

        Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of one
        location, NULL. A NULL `from` is the first start of the run, a NULL `to` its last finish, a NULL `rows` all rows. `name`
        is NULL where that of the tasks is, or without a column `name`. One that ends before it starts counts as without length.

        Ties: of names with equal time the first in the order of the alphabet, NULL last.

        Errors: `bins` below 1 or above 16777216, `rows` below 1, `to` before `from`, a bin beyond BIGINT.
        """
        return self._called("overview", {"tasks": tasks}, {"bins": bins, "from": from_, "to": to, "rows": rows})

    def ready(self, tasks: Optional[Relation] = None, links: Optional[Relation] = None) -> Result:
        """When each task could have started: the latest finish of its predecessors, and how long it waited after that.

        Rows: one per task. `ready_time` is the latest finish among its predecessors, `released_by` the predecessor that has it,
        `delay` is start - ready_time: time in which the task waited for something else, as a free worker. It is negative where a
        task starts before a predecessor finishes: the links do not tell the order, or clocks differ. A task without predecessors
        has NULL in all three. Inputs: given ones are taken as they are, links of every kind. An omitted `links` is the
        `dependency` rows of `links`; an omitted `tasks` the tasks of `tasks` at the ends of the links.

        Units: ticks.

        Nulls: a predecessor that never ended (finish NULL) is ignored; a task without start has no delay. Tasks without id and
        links without source or target are left out. Links to tasks that are not there and links of a task to itself are left out.
        Each is counted in a note.

        Ties: of predecessors that finish together, the smallest task. Duplicate links change nothing; cycles do not matter.

        Errors: a task that is there twice in a run, a delay beyond BIGINT, a finish of -9223372036854775808.
        """
        return self._called("ready", {"tasks": tasks, "links": links}, {})

    def self_time(self, tasks: Optional[Relation] = None) -> Result:
        """Each task's duration without the time in which tasks that started later ran on its lane: those inside of it, and those
        that cross its end. A lane is one location of one run; without a column `location`, all tasks of a run are one lane.

        Rows: one per task. `duration` is finish - start. `self_time`: each tick of a lane belongs to one of the tasks that run
        then, the one that started last; so the self times of a lane add up to the time in which it was busy, and where tasks nest
        it is the duration minus the durations of the direct children. `parent` is the innermost task around it, `depth` how many
        there are (0 outermost). A task is inside of another that starts no later and ends no earlier; where one starts at the
        tick at which the other ends they lie side by side. A task that starts inside of another and ends after it crosses it: it
        has no parent and no depth, is nobody's parent, has the ticks that both run, and is counted in a note. Nesting is found by
        the spans alone; a parent that the trace declares is not asked. Formats decide by themselves which depths the table
        `tasks` has where tasks cross; here only those that cross have none.

        Units: ticks.

        Nulls: a task without start has NULL times; one that never ended (finish NULL) encloses what follows on its lane, takes no
        tick from anyone, and its own times are NULL. A task without location is on no lane: its self time is its duration. Each
        is counted in a note. A task that ends before it starts counts as empty.

        Ties: of equal starts the shorter one started last; of equal spans the one with the smaller task is the outer one; without
        a column `task`, the one that comes first. Tasks without length at the same tick nest in that order, too.

        Errors: a duration beyond BIGINT.
        """
        return self._called("self_time", {"tasks": tasks}, {})

    def slack(self, tasks: Optional[Relation] = None, links: Optional[Relation] = None) -> Result:
        """How much later each task could finish without making the longest chain longer: what could be slower at no cost. Times are
        those of a schedule in which every task starts as soon as its predecessors have finished, with unlimited workers; 0 is its
        start and its horizon the length of the critical path.

        Rows: one per task. It can run from `earliest_start` to `earliest_finish` at the earliest, and from `latest_start` to
        `latest_finish` at the latest; `slack` is the distance between the two, `on_path` says whether it is on the chain that
        `critical_path` gives (other tasks without slack are on chains that are as long). Inputs: given ones are taken as they
        are, links of every kind. An omitted `links` is the `dependency` rows of `links`; an omitted `tasks` the tasks of `tasks`
        at the ends of the links.

        Units: ticks, from the start of that schedule, not of the run.

        Nulls: a NULL duration counts as 0; tasks without id and links without source or target are left out. Links to tasks that
        are not there are left out. Each is counted in a note.

        Ties: those of `critical_path`. Duplicate links change nothing.

        Errors: a cycle (its tasks are named), a task that is there twice in a run, a path time beyond BIGINT.
        """
        return self._called("slack", {"tasks": tasks, "links": links}, {})

    def subtract(self, a: Relation, b: Relation, *, by: Optional[str] = None) -> Result:
        """The parts of each span of `a` that no span of `b` on its location covers.

        Rows: one per remaining part, with the task of `a`; none for a span that is covered. The spans of `a` may overlap each
        other, each is cut by itself. Spans meet on the same run and location; with `by` on the same `name`, `kind`, `role` or
        `process` instead, with `by => 'run'` wherever they are. An input without that column is everywhere (windows of time need
        no location), a `b` without `run` in every run. A span of `a` without length is left when no span of `b` lies over it; one
        of `b` takes nothing away.

        Units: ticks.

        Nulls: spans whose start or finish is NULL are left out, spans of `b` without the column `by` take nothing away; each is
        counted in a note. Spans of `a` without it are left whole. Where only one input has that column, it is ignored. Those that
        end before they start count as empty.

        Ties: none.

        Errors: a piece longer than BIGINT, an unknown `by`.
        """
        return self._called("subtract", {"a": a, "b": b}, {"by": by})

    def timeline(self, tasks: Optional[Relation] = None, *, bins: Optional[int] = None, from_: Optional[int] = None, to: Optional[int] = None) -> Result:
        """How busy each location is in each of a number of equal intervals, the bins. Without a column `location`, all tasks of a
        run are on one.

        Rows: one per location and bin, also where nothing runs. Bin `i` of `n` is [from + floor(i · (to - from) / n), from +
        floor((i + 1) · (to - from) / n)): bins tile the window exactly, and are empty where it has fewer ticks than bins. `busy`
        is the time in the bin in which at least one task runs, `occupancy` is busy ÷ length of the bin, `mean_concurrency` the
        sum of the durations in the bin ÷ its length (nested tasks count each). `starts` and `finishes` are the tasks that do so
        in the bin; a task finishes in the bin of its last tick. Only locations with tasks are known, those with none in the
        window among them.

        Units: `bin_start`, `bin_finish` and `busy` in ticks; occupancy is a share, mean concurrency a number of tasks.

        Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of one
        location, NULL. A NULL `from` is the first start of the run, a NULL `to` its last finish. In an empty bin the ratios are
        NULL. A task without length runs at no tick, starts and finishes at its own (in the last bin where that is `to`); one that
        ends before it starts counts as one.

        Ties: none.

        Errors: `bins` below 1 or above 16777216, `to` before `from`, a bin beyond BIGINT.
        """
        return self._called("timeline", {"tasks": tasks}, {"bins": bins, "from": from_, "to": to})

    def what_if(self, changed: Relation, tasks: Optional[Relation] = None, links: Optional[Relation] = None, *, lanes: Optional[int] = None) -> Result:
        """How short a run could be if some tasks had other durations: its longest chain and its work, with the recorded durations
        and with those in `changed`.

        Rows: one per run. `path_before` and `path_after` are the lengths of the longest chain through the links, `work_before`
        and `work_after` the sums of the durations, `bound_before` and `bound_after` the larger one of path and work ÷ lanes
        (rounded up): no schedule on that many lanes can be shorter. `lanes` is the number of locations of the run's tasks unless
        it is given; without either, the bound is the path. `changed` counts the tasks whose duration was replaced. Inputs: given
        ones are taken as they are, links of every kind. An omitted `links` is the `dependency` rows of `links`; an omitted
        `tasks` the tasks of `tasks` at the ends of the links. When `links` is omitted and a run has no dependency, it has no row,
        and a note says so.

        Units: ticks; `lanes` and `changed` are numbers.

        Nulls: a NULL duration counts as 0; a row of `changed` without task or duration changes nothing. Tasks without id, links
        without source or target, links to and changes of tasks that are not there are left out. Each is counted in a note. A
        `changed` without `run` is for every run in which the task is.

        Ties: none.

        Errors: a cycle (its tasks are named), a task that is there twice in a run or twice in `changed`, a new duration below 0,
        a path or work beyond BIGINT, `lanes` below 1.
        """
        return self._called("what_if", {"tasks": tasks, "links": links, "changed": changed}, {"lanes": lanes})
