//! Where saved queries are found: in the directories of the command line, of the project, of the user, and among the
//! built-in ones.

use std::path::{Path, PathBuf};

use tq_engine::nearest::nearest;
use tq_engine::queries::{Library, SavedQuery};

use crate::args::LibraryArgs;
use crate::errors::{Failure, Problem, did_you_mean};
use crate::timeout;

/// All saved queries. A directory that the command line names must exist; the others need not.
pub(crate) fn open(args: &LibraryArgs) -> Result<Library, Failure> {
    let mut directories = args.directories.clone();
    let user = of_user();
    directories.extend([of_project(), user.clone()].into_iter().flatten().filter(|directory| directory.is_dir()));
    Ok(Library::open(&directories)?.trusting(user))
}

/// The directories that [`open`] looks in and that are there.
pub(crate) fn directories(args: &LibraryArgs) -> Vec<PathBuf> {
    args.directories.iter().cloned().chain(of_project()).chain(of_user()).filter(|folder| folder.is_dir()).collect()
}

/// Reports of other tools, and the saved queries that have their figures; the pages `docs/coming-from-*.md` tell more.
const ELSEWHERE: [(&[&str], &str); 13] = [
    (
        &["cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_sum", "gpukernsum", "gpumemtimesum", "gpusum"],
        "`gpu-kernels`",
    ),
    (&["cuda_gpu_mem_size_sum", "gpumemsizesum", "get_memory_bw_summary"], "`gpu-copies`"),
    (&["cuda_api_sum", "cudaapisum"], "`gpu-calls`"),
    (&["cuda_kern_exec_sum", "kernexecsum"], "`gpu-launches`"),
    (&["nvtx_gpu_proj_sum", "nvtx_kern_sum", "nvtxkernsum"], "`gpu-nvtx-ranges`"),
    (&["gpu_gaps"], "`gpu-idle-gaps`"),
    (&["gpu_time_util", "get_temporal_breakdown"], "`gpu-time-breakdown` and `hta-temporal-breakdown`"),
    (&["get_comm_comp_overlap"], "`gpu-communication-overlap` and `hta-communication-overlap`"),
    (&["get_idle_time_breakdown"], "`gpu-idle-gaps` and `hta-idle-breakdown`"),
    (&["get_gpu_kernel_breakdown"], "`gpu-kernels`, `hta-kernel-types` and `hta-kernels`"),
    (&["get_cuda_kernel_launch_stats"], "`gpu-launches` and `hta-launch-statistics`"),
    (&["get_queue_length_summary"], "`gpu-queue-length` and `hta-queue-length`"),
    (&["critical_path_analysis"], "`gpu-critical-path` and `hta-critical-path`"),
];

/// The query of a name, whose file is read within `--timeout`.
pub(crate) fn find(library: &Library, name: &str) -> Result<SavedQuery, Failure> {
    let (searched, wanted) = (library.clone(), name.to_owned());
    match timeout::parsing(move || searched.find(&wanted))?? {
        Some(query) => Ok(query),
        None => {
            let ours = ELSEWHERE.iter().find(|(theirs, _)| theirs.contains(&name)).map(|(_, ours)| *ours);
            let meant = match ours {
                Some(ours) => format!("; its figures are in {ours}"),
                None if nearest(name, library.names()).is_some() => did_you_mean(name, library.names()),
                None => nearest(name, library.names().into_iter().flat_map(|known| known.split('-')))
                    .map(|word| format!("; did you mean one of those that `tq queries {word}` lists?"))
                    .unwrap_or_default(),
            };
            Err(Problem::new(format!("no saved query `{name}`{meant}"))
                .hint("`tq queries` lists the saved queries")
                .into())
        }
    }
}

/// The words of a line that asks a saved query or names files: those in quotes may have blanks.
pub(crate) fn words(line: &str) -> Result<Vec<String>, Failure> {
    shlex::split(line)
        .ok_or_else(|| Problem::new("a quote is not closed").hint("words with blanks are written `'two words'`").into())
}

/// The values of parameters that follow the name of a query as `name=value`.
pub(crate) fn values(
    query: &SavedQuery,
    words: impl Iterator<Item = String>,
) -> Result<Vec<(String, String)>, Failure> {
    words
        .map(|word| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(Problem::new(format!("`{word}` is not of the form key=value"))
                .hint(format!("after `{}` come values of its parameters, e.g. `name=value`", query.name))
                .into()),
        })
        .collect()
}

/// `.tq/queries` of the current directory or of the nearest one above that has it.
fn of_project() -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?;
    current.ancestors().map(|directory| directory.join(".tq/queries")).find(|directory| directory.is_dir())
}

/// `$XDG_CONFIG_HOME/tq/queries`, else `~/.config/tq/queries`.
fn of_user() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("tq/queries"))
}

/// Whether a word of the command line is rather the path of a query than its name.
pub(crate) fn is_file(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|extension| extension == "sql")
}
