//! The command line: commands, arguments and their help, in one table from which help texts and completion are made.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use tq_engine::queries::MetricTolerance;
use tq_engine::time::GivenTime;

use crate::format::Format;
use crate::text::words::{bytes, duration};

/// Answers questions about execution traces in SQL.
#[derive(Debug, Parser)]
#[command(
    name = "tq",
    version = version(),
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Without a command, `tq TRACE…` opens the prompt.\n\n\
        Examples:\n  \
        tq run.tfp                                    open a trace and ask\n  \
        tq query run.tfp -c 'SELECT * FROM runs'      one answer\n  \
        tq query base=a.json new=b.json -f cmp.sql    two runs, queries from a file\n  \
        tq report run.tfp                             a page with a picture"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Say nothing but errors on stderr: no warnings, notes or progress
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer SQL and leave
    Query(QueryArgs),
    /// Write a page about traces: three facts in plain words, then the evidence with pictures
    Report(ReportArgs),
    /// Look at traces in a browser: time line, panels, SQL
    View(ViewArgs),
    /// Check saved queries on traces: what they expect, and their metrics against a baseline
    Check(CheckArgs),
    /// Say what changed between two runs: makespan, why, and the work that changed most
    Diff(DiffArgs),
    /// Read traces and write them into a store on disk, which answers as they do
    Import(ImportArgs),
    /// List the runs of a store
    Runs(RunsArgs),
    /// Remove runs from a store
    Remove(RemoveArgs),
    /// Delete files of a store that no run needs any more
    Gc(GcArgs),
    /// Bring small runs of a store together in large files
    Compact(CompactArgs),
    /// List the trace formats, or describe one
    #[command(after_help = "Examples:\n  \
        tq formats                all formats\n  \
        tq formats chrome         one: what is read, its options")]
    Formats(DocsArgs),
    /// List the functions, or describe one
    #[command(after_help = "Examples:\n  \
        tq functions              all functions\n  \
        tq functions busy         one, with an example and its answer")]
    Functions(DocsArgs),
    /// List the tables of every session, or describe one
    #[command(after_help = "Examples:\n  \
        tq tables                 all tables\n  \
        tq tables tasks           the columns of one, with their meaning and unit")]
    Tables(DocsArgs),
    /// List the saved queries by topic, describe one, or search them
    Queries(QueriesArgs),
    /// Run a worker, which does parts of others' queries: `tq query --cluster`
    Cluster(ClusterArgs),
    /// Print what makes a shell complete commands, saved queries and functions
    Completions(CompletionsArgs),
    /// Write the manual pages into a directory
    Man(ManArgs),
}

/// What to open, and how. Shared by all commands that read traces.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OpenArgs {
    /// A trace: `[NAME=]PATH`; a file, a directory of traces, a store or `STORE/RUN`, a URL (s3, gs, az, http, https), or `-` for standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub(crate) traces: Vec<String>,
    /// Read the traces as this format instead of recognising it (`tq formats` lists them)
    #[arg(long, value_name = "FORMAT", help_heading = "Reading")]
    pub(crate) from_format: Option<String>,
    /// An import option of a format, e.g. `table=tasks`
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Reading")]
    pub(crate) options: Vec<(String, String)>,
    /// Of stores, open only the runs that a pattern names: `night` names `night/1`, `*` is any text
    #[arg(long = "run", value_name = "PATTERN", help_heading = "Reading")]
    pub(crate) run_pattern: Option<String>,
    /// Keep the traces that are read in the user's cache folder, and read them from there the next time
    #[arg(
        long,
        value_name = "yes|no",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        value_parser = yes_or_no,
        help_heading = "Reading"
    )]
    pub(crate) cache: Option<bool>,
    /// Keep only what overlaps the time from here on, e.g. `1.5ms` (bare numbers are ticks)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Reading")]
    pub(crate) from: Option<GivenTime>,
    /// Keep only what overlaps the time before this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Reading")]
    pub(crate) to: Option<GivenTime>,
    /// Note something about the runs in `runs.args`, e.g. `machine=node7`
    #[arg(long = "run-arg", value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Reading")]
    pub(crate) run_args: Vec<(String, String)>,
    /// Memory for tables and queries, e.g. `8GB` [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Reading")]
    pub(crate) memory: Option<usize>,
    /// The longest text or list that a function may make or a file may hold [default: 64MB]
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Reading")]
    pub(crate) max_value: Option<usize>,
    /// Threads for reading and for queries [default: all cores]
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Reading")]
    pub(crate) threads: Option<usize>,
    /// Fail (exit status 2) when any record of a trace was lost while reading
    #[arg(long, help_heading = "Reading")]
    pub(crate) strict: bool,
    /// Let SQL only ask: it creates, changes and writes nothing
    #[arg(long, help_heading = "Reading")]
    pub(crate) read_only: bool,
    /// Let workers do parts of queries about stores: HOST:PORT,HOST:PORT, or `local:2` for two of its own; `off` for none [default: TQ_CLUSTER, or `cluster` of the configuration]
    #[arg(long, value_name = "WORKERS", help_heading = "Reading")]
    pub(crate) cluster: Option<String>,
    /// Believe those workers alone for whom the certificates (PEM) of this file vouch, and encrypt what travels [default: TQ_TLS_CA]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Reading")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Whether parts of the traces will be asked for: set by commands, not by users.
    #[arg(skip)]
    pub(crate) keep_runs: bool,
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write `--cache` or `--cache=no`".to_owned()),
    }
}

/// `tq query`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("sql").args(["command", "file"]),
    override_usage = "tq query [OPTIONS] [TRACE]... (-c <SQL> | -f <FILE> | NAME)",
    after_help = "Without -c and -f, the last argument is the NAME of a saved query (`tq queries` lists them) or a `.sql` file.\n\n\
        Examples:\n  \
        tq query run.tfp longest-tasks --param limit=5     a saved query\n  \
        tq query run.tfp -c 'SELECT * FROM runs'           SQL\n  \
        tq query a.tfp b.tfp -f compare.sql -o answer.csv  a file, two runs\n\n\
        Formats: table, csv, tsv, json, ndjson, markdown, parquet, arrow, svg (a Gantt chart), chrome (a Chrome trace).\n\
        On a terminal `table`, in a pipe `csv`, with -o by the file's extension, unless --format tells."
)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,
    /// The SQL to answer; several statements end with `;` each
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// A file with SQL or a saved query, `-` for standard input; the first failing statement stops the run
    #[arg(short = 'f', long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// A value for `$KEY` in the SQL: a whole number, a decimal, true, false, or text; in a saved query, of its type there
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
    /// How to write the answer
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub(crate) format: Option<Format>,
    /// Draw a chart (SVG) of the answer, e.g. `bar x=duration y=name`; a mistake lists what there is
    #[arg(long, value_name = "CHART")]
    pub(crate) chart: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// How long a question, or reading the traces, may take.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeoutArgs {
    /// How long each query, and reading the traces, may take, e.g. `30s`, `500ms` or `2m` [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<std::time::Duration>,
}

/// Where saved queries are looked for.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LibraryArgs {
    /// A directory of saved queries, searched before `.tq/queries`, those of the user, and the built-in ones
    #[arg(long = "queries", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,
}

/// `tq report`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "A template is markdown; its fenced `sql` blocks hold the name of a saved query (with `name=value` parameters) or SQL,\n\
        and become a table or a picture. `base=` and `new=` before two traces add what changed.\n\n\
        Examples:\n  \
        tq report run.tfp -o run.md                  a page and its pictures beside it\n  \
        tq report base=a.tfp new=b.tfp --html -o c.html  one self-contained page about the change\n  \
        tq report run.tfp --template mine.md         a page of your own"
)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,
    /// The page to write; its pictures go beside it [default: RUN.report.md, standard output in a pipe]
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Markdown with fenced `sql` blocks instead of the built-in page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) template: Option<PathBuf>,
    /// Put the pictures into the page instead of beside it
    #[arg(long)]
    pub(crate) embed: bool,
    /// Write one self-contained HTML page, as `-o PAGE.html` does
    #[arg(long)]
    pub(crate) html: bool,
    /// How many bytes of data the time line of an HTML page may have [default: 2MB; with --template: no time line]
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "no_timeline")]
    pub(crate) timeline_size: Option<usize>,
    /// Leave the time line out of an HTML page, and with it every script
    #[arg(long)]
    pub(crate) no_timeline: bool,
    /// Tables where pictures would be, e.g. for the summary of a job in CI
    #[arg(long, conflicts_with_all = ["embed", "html"])]
    pub(crate) tables: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

/// `tq view`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "The page is for this machine alone, and for whoever has its address; it asks and never writes. Ctrl-C ends it.\n\n\
        Examples:\n  \
        tq view run.tfp                    opens the browser\n  \
        tq view base=a.tfp new=b.tfp       two runs on one scale\n  \
        tq view runs.store/night/1 --port 8080 --no-open  prints the address"
)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The port to listen on [default: any free one]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Print the address alone, without opening a browser
    #[arg(long)]
    pub(crate) no_open: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

/// `tq check`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Exit status: 0 every check held, 1 one did not, 2 one could not run (2 beats 1).\n\n\
        Examples:\n  \
        tq check run.tfp --query checks/                          what the files of a folder expect\n  \
        tq check new/*.tfp --query checks/ --baseline base/*.tfp  and their metrics against a baseline\n  \
        tq check run.tfp --query longest.sql --bless              write what `expect same as:` compares with\n  \
        tq check new.tfp --baseline base.tfp --tolerance 10%      makespan, busy time, critical path\n\n\
        `--strict` also ends with 2 when records of a trace were lost while reading.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,
    /// A saved query with `expect` or `metric` lines: a file, a folder of files, or a name; without one, makespan, busy time
    /// and critical path are compared with the baseline
    #[arg(long = "query", value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) checks: Vec<String>,
    /// Traces that metrics are compared with, each run with its like: the same name, problem size and cores; three
    /// repetitions and more a side allow a test of significance
    #[arg(long, value_name = "TRACE", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) baseline: Vec<String>,
    /// How much worse they may get where no query is named, e.g. `10%` or `2ms` [default: 5%]
    #[arg(long, value_name = "TOLERANCE", value_parser = tolerance, conflicts_with = "checks", requires = "baseline")]
    pub(crate) tolerance: Option<MetricTolerance>,
    /// A value for a parameter of the queries that declare it
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) params: Vec<(String, String)>,
    /// A file that `expect same as:` may name although it lies outside of the folder of its query
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) expected: Vec<PathBuf>,
    /// Write the files that `expect same as:` compares with instead of comparing
    #[arg(long)]
    pub(crate) bless: bool,
    /// Skip what needs something that the traces do not hold, instead of ending with 2
    #[arg(long)]
    pub(crate) allow_skip: bool,
    /// Draw the time around the offending rows; a second failed check gets FILE-2.svg, and so on
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) picture: Option<PathBuf>,
    /// Write the outcomes as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    /// Print annotations for GitHub Actions, at the line of the check that failed
    #[arg(long, help_heading = "Output")]
    pub(crate) github: bool,
    /// Append a summary in markdown to FILE; without FILE it is printed instead of the lines
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = "Output")]
    pub(crate) markdown: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

/// `tq diff`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    override_usage = "tq diff [OPTIONS] <BASE> <NEW>",
    after_help = "Exit status: 0 whatever changed, 2 when a trace cannot be read; `tq check` judges.\n\n\
        Examples:\n  \
        tq diff before.tfp after.tfp                 for people\n  \
        tq diff before.tfp after.tfp --format json   for scripts: times in ticks"
)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// `text` for people, `json` for scripts
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DiffFormat,
    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

/// How `tq diff` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiffFormat {
    Text,
    Json,
}

/// `tq import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "All traces of a call become part of the store together, or none does. Every command reads a store like a trace.\n\n\
    Examples:\n  \
    tq import night/1=run.json.gz --into runs.store       the store is made if it is not there\n  \
    tq query runs.store time-by-name                      all runs\n  \
    tq query runs.store/night/1 -c 'SELECT * FROM runs'   one of them",
    mut_arg("memory", |memory| memory.help("Memory for reading, e.g. `8GB`; rows wait on disk beyond a quarter of it [default: 2GB, at most three quarters of the machine's]")),
    mut_arg("cluster", |cluster| cluster.hide(true)),
    mut_arg("tls_ca", |tls_ca| tls_ca.hide(true))
)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The folder of the store
    #[arg(long, value_name = "STORE", value_hint = ValueHint::DirPath)]
    pub(crate) into: PathBuf,
    /// Replace runs that have the names of the new ones, or with `--replace=PATTERN` all that the pattern names
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true)]
    pub(crate) replace: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) timeout: TimeoutArgs,
}

/// `tq runs`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunsArgs {
    /// The folder of the store
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    pub(crate) store: PathBuf,
    /// How to write the list
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub(crate) format: Option<Format>,
    /// Write to a file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Memory for reading the store's log, e.g. `2GB` [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<usize>,
}

/// `tq remove`.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// The folder of the store
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    pub(crate) store: PathBuf,
    /// The run, or a pattern: `night` names `night/1` too, `*` is any text
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Memory for reading the store's log, e.g. `2GB` [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<usize>,
}

/// `tq gc`.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    /// The folder of the store
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    pub(crate) store: PathBuf,
    /// Keep the files of runs that were removed later than this ago: readers may be at work on them; behind a URL also files that no
    /// run names and that are younger: an import may be at work on them [default: 1h; of the latter 24h]
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub(crate) older_than: Option<std::time::Duration>,
    /// Memory for reading the store's log, e.g. `2GB` [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<usize>,
}

/// `tq compact`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompactArgs {
    /// The folder of the store
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    pub(crate) store: PathBuf,
    /// Memory for the rows that move, e.g. `8GB` [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<usize>,
}

/// `tq cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// What `tq cluster` does.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Do parts of others' queries; the first line says where it listens
    Worker(WorkerArgs),
    /// Whether workers would help, and what they do at the moment
    Status(StatusArgs),
}

/// `tq cluster status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// HOST:PORT,HOST:PORT [default: TQ_CLUSTER, or `cluster` of the configuration]
    #[arg(value_name = "WORKERS")]
    pub(crate) workers: Option<String>,
    /// Believe those workers alone for whom the certificates (PEM) of this file vouch [default: TQ_TLS_CA]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tls_ca: Option<PathBuf>,
    /// How to write the list
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub(crate) format: Option<Format>,
}

/// `tq cluster worker`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A worker reads stores that it sees under the same path as whoever asks, and nothing else. Beyond this machine \
    it wants a token in TQ_TOKEN, the same here and there, and folders or URLs that it may read.\n\n\
    Examples:\n  \
    tq cluster worker                                            prints `listening on 127.0.0.1:PORT`\n  \
    TQ_TOKEN=… tq cluster worker 0.0.0.0:7070 --allow /data      for other machines\n  \
    tq query runs.store --cluster 127.0.0.1:7070 time-by-name    asks it"
)]
pub(crate) struct WorkerArgs {
    /// Where to listen; port 0 is any free one
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) address: String,
    /// Memory for queries, e.g. `8GB` [default: three quarters of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<usize>,
    /// Threads of a query [default: all cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Read only stores below this folder, or below this URL
    #[arg(long, value_name = "FOLDER|URL", value_hint = ValueHint::DirPath)]
    pub(crate) allow: Vec<PathBuf>,
    /// Encrypt what travels, and show these certificates (PEM) to clients
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key (PEM) of the first certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,
    /// The token is the first line of standard input, whose end ends the worker: how `--cluster local:N` starts its own.
    #[arg(long, hide = true)]
    pub(crate) of_client: bool,
}

/// `tq queries`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tq queries                all, by topic\n  \
    tq queries time-by-name   one: its parameters and its SQL\n  \
    tq queries idle gpu       those whose name, title or SQL have the words\n  \
    tq query TRACE time-by-name")]
pub(crate) struct QueriesArgs {
    /// The one to describe, or words to search for
    #[arg(value_name = "NAME")]
    pub(crate) name: Vec<String>,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

/// `tq formats`, `tq functions`, `tq tables`.
#[derive(Debug, clap::Args)]
pub(crate) struct DocsArgs {
    /// The one to describe
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write all of them as a page of markdown
    #[arg(long, conflicts_with = "name")]
    pub(crate) markdown: bool,
}

/// `tq completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    source <(tq completions bash)      in ~/.bashrc; zsh likewise in ~/.zshrc\n  \
    tq completions fish | source       in ~/.config/fish/config.fish\n\n\
    The shell asks tq itself, so it knows the saved queries of the project that you are in.")]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// `tq man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tq man ~/.local/share/man/man1      install them for yourself; `man tq-query` shows one")]
pub(crate) struct ManArgs {
    /// The directory; it is made
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

/// `0.1.0 (engine 0.1.0, DataFusion 55.2.0)`.
fn version() -> &'static str {
    static VERSION: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        format!(
            "{} (engine {}, DataFusion {})",
            env!("CARGO_PKG_VERSION"),
            tq_engine::VERSION,
            datafusion::DATAFUSION_VERSION
        )
    });
    &VERSION
}

/// The names of all commands, for completion and for hints.
pub(crate) fn command_names() -> Vec<String> {
    use clap::CommandFactory;
    Args::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it like `key=value`".to_owned()),
    }
}

/// How far times may change: a number alone is none, but 0.
pub(crate) fn tolerance(text: &str) -> Result<MetricTolerance, String> {
    match MetricTolerance::parse(text).map_err(|_| format!("`{text}` is no tolerance: write 5% or a time like 2ms"))? {
        MetricTolerance::Absolute(number) if number != 0.0 => {
            Err(format!("`{text}` of what? Write {text}% or a time like 2ms"))
        }
        tolerance => Ok(tolerance),
    }
}

/// A time that may be none.
fn age(text: &str) -> Result<std::time::Duration, String> {
    if text.trim_end_matches(['h', 'm', 's']) == "0" { Ok(std::time::Duration::ZERO) } else { duration(text) }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("write a whole number from 1 to 1024".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_commands_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
