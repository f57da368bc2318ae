//! `tq man DIR`: the manual pages, one per command.

use std::path::Path;

use clap::CommandFactory;

use crate::args::{Args, ManArgs};
use crate::errors::{Failure, Problem};
use crate::files;
use crate::output::print;

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory).map_err(|error| Problem::file("write", directory, &error))?;
    let mut command = Args::command();
    command.build();
    let mut pages = vec![page(&command, "tq", directory)?];
    for subcommand in command.get_subcommands() {
        pages.push(page(subcommand, &format!("tq-{}", subcommand.get_name()), directory)?);
    }
    print(&format!("{} pages in {}; `man -l {}` shows one\n", pages.len(), directory.display(), pages[0]))
}

fn page(command: &clap::Command, name: &str, directory: &Path) -> Result<String, Failure> {
    let path = directory.join(format!("{name}.1"));
    let mut text = Vec::new();
    // clap wants names that live as long as the program; there are a dozen of them.
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    clap_mangen::Man::new(command.clone().name(name)).render(&mut text)?;
    files::write(&path, &String::from_utf8_lossy(&text))?;
    Ok(path.display().to_string())
}
