//! No files of a crate import each other in a circle, so that each can be read with what stands below it in mind alone.

use std::collections::BTreeMap;
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::tidy::{read, report, root, sources, without_tests};

/// A module by the names that lead to it.
type Module = Vec<String>;

#[test]
fn files_import_each_other_in_no_circle() {
    let mut faults = Vec::new();
    for folder in ["udfs/src", "engine/src", "cli/src"] {
        let files: BTreeMap<Module, String> = sources()
            .iter()
            .filter_map(|path| {
                let within = path.strip_prefix(root().join(folder)).ok()?;
                let is_test = within.components().any(|part| part.as_os_str() == "tests")
                    || within.file_stem().is_some_and(|name| name == "tests");
                (!is_test).then(|| (module_of(within), read(path)))
            })
            .collect();
        assert!(files.len() > 20, "{folder} has its files");
        let circles = circles(&files);
        faults.extend(circles.iter().map(|circle| format!("{folder}: a circle of {}", circle.join(", "))));
    }
    report(&faults);
}

#[test]
fn circles_are_found() {
    let file = |module: &str, text: &str| (module.split("::").map(str::to_owned).collect(), text.to_owned());
    let files = |c: &str| {
        BTreeMap::from([
            file("a", "use crate::{b::{self, X}, c::d::Y as Z};\n#[cfg(test)]\nmod tests {\n    use super::e;\n}"),
            file("b", "// use crate::a;\nfn f(c: super::c::C) {}"),
            file("c", c),
            file("c::d", "fn f() -> super::X { self::g() }"),
            file("e", "use crate::a::A;"),
        ])
    };
    // A module may name what is in it, and be named there.
    assert_eq!(circles(&files("use self::d::Y;\npub mod d;")), Vec::<Vec<String>>::new());
    assert_eq!(circles(&files("use super::a::A;")), [["a", "b", "c"]]);
}

/// `sql/order/mod.rs` is `["sql", "order"]`.
fn module_of(within: &Path) -> Module {
    let mut names: Module =
        within.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

/// The modules that can be reached from each other; a module and those in it do not count, they are one thing.
fn circles(files: &BTreeMap<Module, String>) -> Vec<Vec<String>> {
    let mut graph = DiGraph::<&Module, ()>::new();
    let nodes: BTreeMap<&Module, NodeIndex> = files.keys().map(|module| (module, graph.add_node(module))).collect();
    for (module, text) in files {
        for path in paths(text) {
            let Some(named) = nearest_module(files, absolute(module, &path)) else { continue };
            if !named.starts_with(module) && !module.starts_with(named) {
                graph.update_edge(nodes[module], nodes[named], ());
            }
        }
    }
    let circles = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
    circles
        .map(|circle| {
            let mut names: Vec<String> = circle.iter().map(|node| graph[*node].join("::")).collect();
            names.sort();
            names
        })
        .collect()
}

/// The file that holds what a path names: the module of its longest beginning.
fn nearest_module(files: &BTreeMap<Module, String>, mut path: Module) -> Option<&Module> {
    loop {
        if let Some((module, _)) = files.get_key_value(&path) {
            return Some(module);
        }
        path.pop()?;
    }
}

/// A path as the crate's root sees it.
fn absolute(module: &Module, path: &str) -> Module {
    let mut from = module.clone();
    for name in path.split("::") {
        match name {
            "crate" => from.clear(),
            "self" => {}
            "super" => drop(from.pop()),
            name => from.push(name.to_owned()),
        }
    }
    from
}

/// The paths of the code that begin with `crate`, `super` or `self`, each branch of a tree by itself.
fn paths(text: &str) -> Vec<String> {
    let code: String = without_tests(text)
        .iter()
        .map(|(_, line)| line.split("//").next().unwrap_or_default().to_owned() + " ")
        .collect();
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|letter| letter.is_alphanumeric() || "_:$".contains(letter)) {
                branches(&code[at..], String::new(), &mut found);
            }
        }
    }
    found
}

/// Adds the paths of a tree, which begin with `before`; gives what stands behind it.
fn branches<'t>(tree: &'t str, before: String, found: &mut Vec<String>) -> &'t str {
    let length =
        tree.find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':').unwrap_or(tree.len());
    let (path, mut rest) = tree.split_at(length);
    let path = before + path;
    if path.ends_with("::")
        && let Some(inside) = rest.strip_prefix('{')
    {
        rest = inside.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            rest = branches(rest, path.clone(), found);
            // What follows a branch: its other name, or the comma.
            rest = rest.trim_start_matches(|letter: char| letter != ',' && letter != '}');
            rest = rest.trim_start_matches(',').trim_start();
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    found.push(path.trim_end_matches(':').to_owned());
    rest
}
