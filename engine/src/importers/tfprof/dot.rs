//! The DOT dump of `taskflow.dump()`: the task graph, one statement a line, names unescaped.
//!
//! ```text
//! digraph Taskflow {
//! subgraph cluster_p0x7ffd… {                  a graph; below it: its nodes and edges
//! label="Taskflow: nested";
//! p0x55a8…[label="A" ];                        a node; unnamed: the label is its id
//! p0x55a8… -> p0x55a9…;                        a dependency
//! p0x55b0…[label="C" shape=diamond …];         a condition
//! p0x55b0… -> p0x55b8… [style=dashed label="0"];        a weak edge, by branch
//! p0x55c0…[shape=box3d, color=blue, label="M [m1]"];    a module; its edges to 4.0: p0x…->p0x…;
//! subgraph cluster_p0x55d0… {                  a subflow: named after its task, inside of the task's graph
//! p0x7f8a… -> p0x55d0…;                        a join (to 3.8); later `[style=dashed color=blue]`: no dependency
//! }
//! }
//! subgraph cluster_p0x7ffe… { label="m1"; … }  a module's graph, once, behind the first
//! }
//! ```
//! Taskflow 4.1 indents, adds `compound=true;`, and puts a literal `\npriority: HIGH` into labels where priorities are
//! enabled.
//!
//! A regular DOT parser fails on quotes in names, and a line end in a name splits the statement in two: so labels run to
//! the last quote before `];` at the end of a line. Edges between different graphs are joins: a dependency never leaves
//! its graph.

use std::collections::HashMap;

/// How a file begins.
const OPENING: &[u8] = b"digraph Taskflow {";

/// What a statement becomes at most: a node with its texts and its place in two indices, or an edge.
pub(super) const STATEMENT_MEMORY: usize = 320;

/// Whether `head` begins a Taskflow graph.
pub(super) fn recognise(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(OPENING)
}

/// What the file says of a node's kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Static, asynchronous, runtime, or a placeholder: the file does not say which.
    Plain,
    Condition,
    Module,
    Cuda,
}

/// A task of the graph.
#[derive(Debug)]
pub(super) struct Node {
    /// `p0x…`, the address of the task.
    pub(super) id: String,
    /// As written, empty when unnamed; without the module's suffix.
    pub(super) name: Vec<u8>,
    pub(super) shape: Shape,
    /// The graph it stands in.
    pub(super) cluster: usize,
    /// The suffix of a module: the label of its graph, or `m<k>` for the k-th graph.
    pub(super) module: Option<Vec<u8>>,
}

/// A graph: the taskflow itself, a subflow or a module.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The id behind `cluster_`: for subflows the id of the task.
    pub(super) id: String,
    pub(super) label: Vec<u8>,
    pub(super) nodes: Vec<usize>,
}

/// What an edge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    Dependency,
    /// From a condition.
    Weak,
    /// From the children of a subflow or a module to its task: drawn, but no dependency.
    Join,
}

/// An edge between two nodes.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) source: usize,
    pub(super) target: usize,
    pub(super) kind: EdgeKind,
    /// The branch of a weak edge.
    pub(super) branch: Option<String>,
    pub(super) line: usize,
}

/// The whole file.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) clusters: Vec<Cluster>,
    pub(super) edges: Vec<Edge>,
    /// Statements that were not understood, and the first of them with its line.
    pub(super) strange: u64,
    pub(super) strange_example: Option<(usize, String)>,
    /// Whether the braces of the file are closed.
    pub(super) closed: bool,
}

impl Graph {
    /// Number of node and edge statements, understood or not.
    pub(super) fn statements(&self) -> u64 {
        (self.nodes.len() + self.edges.len()) as u64 + self.strange
    }

    /// Reads the text of a file.
    pub(super) fn parse(text: &[u8]) -> Graph {
        let mut reader = Reader { graph: Graph::default(), open: Vec::new(), arrows: Vec::new() };
        let mut statements = Statements { text, at: 0, line: 1 };
        let mut depth = 0u32;
        while let Some((line, statement)) = statements.next() {
            match statement {
                b"}" => {
                    depth = depth.saturating_sub(1);
                    // The brace of `digraph` closes no cluster.
                    if depth > 0 {
                        reader.open.pop();
                    }
                }
                _ if statement.starts_with(OPENING) => depth += 1,
                _ if statement.starts_with(b"subgraph cluster_") => {
                    depth += 1;
                    reader.begin_cluster(&statement[b"subgraph cluster_".len()..]);
                }
                _ => reader.statement(line, statement),
            }
        }
        reader.graph.closed = depth == 0;
        reader.finish()
    }

    /// The task of the graph that a subflow's cluster belongs to.
    pub(super) fn subflow_tasks(&self) -> Vec<Option<usize>> {
        let by_id: HashMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect();
        self.clusters.iter().map(|cluster| by_id.get(cluster.id.as_str()).copied()).collect()
    }

    /// The graph of each module node, where it can be told for sure.
    pub(super) fn module_clusters(&self) -> Vec<Option<usize>> {
        let mut by_label: HashMap<&[u8], Option<usize>> = HashMap::new();
        for (index, cluster) in self.clusters.iter().enumerate() {
            // Two graphs with one label cannot be told apart.
            by_label.entry(&cluster.label).and_modify(|known| *known = None).or_insert(Some(index));
        }
        let labelled = |label: &[u8]| by_label.get(label).copied().flatten();
        // From 3.11 on a graph is labelled with the first module task that uses it, and `[m<k>]` on an unnamed one counts
        // the graphs in the order in which they are met.
        let mut met: Vec<Option<usize>> = Vec::new();
        let mut clusters = vec![None; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.shape == Shape::Module) {
            clusters[index] = match &node.module {
                Some(label) => labelled(label).or_else(|| {
                    let number: usize = std::str::from_utf8(label.strip_prefix(b"m")?).ok()?.parse().ok()?;
                    met.get(number.checked_sub(1)?).copied().flatten()
                }),
                None => {
                    let cluster = labelled(&node.name);
                    if !met.contains(&cluster) {
                        met.push(cluster);
                    }
                    cluster
                }
            };
        }
        clusters
    }
}

/// Cuts the text into statements: lines, unless a label holds line ends.
struct Statements<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl<'t> Statements<'t> {
    /// The next statement without indentation and line end, and its line.
    fn next(&mut self) -> Option<(usize, &'t [u8])> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.line += rest[..blank].iter().filter(|byte| **byte == b'\n').count();
            self.at += blank;
            let rest = &rest[blank..];
            if rest.is_empty() {
                return None;
            }
            let length = statement_length(rest);
            let (line, statement) = (self.line, rest[..length].trim_ascii_end());
            self.line += rest[..length].iter().filter(|byte| **byte == b'\n').count();
            self.at += length;
            if !statement.is_empty() {
                return Some((line, statement));
            }
        }
    }
}

/// The length of the statement that `text` begins with: to the line end, or, when the line opens a label, to the line end
/// that follows the label's end.
fn statement_length(text: &[u8]) -> usize {
    let line_end = |from: usize| memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at);
    let first = line_end(0);
    let Some(label) = memchr::memmem::find(&text[..first], b"label=\"") else { return first };
    let is_node = text[..label].contains(&b'[') && !text[..label].windows(2).any(|pair| pair == b"->");
    let is_cluster = label == 0;
    if !is_node && !is_cluster {
        return first;
    }
    let mut end = first;
    loop {
        let line = text[..end].trim_ascii_end();
        let ended = if is_cluster { line.ends_with(b"\";") && line.len() > 8 } else { label_end(line).is_some() };
        if ended {
            return end;
        }
        if end == text.len() {
            // The label never ends: leave it at the line, the rest may be good.
            return first;
        }
        end = line_end(end + 1);
    }
}

/// Where the label of a node statement ends: the last quote before `];`, ` ];` or ` shape=…];`.
fn label_end(statement: &[u8]) -> Option<usize> {
    let inner = statement.strip_suffix(b"];")?;
    let quote = memchr::memrchr(b'"', inner)?;
    let tail = &inner[quote + 1..];
    let opened = memchr::memmem::find(statement, b"label=\"")? + b"label=\"".len();
    let is_tail = tail.is_empty() || tail == b" " || tail.starts_with(b" shape=");
    (is_tail && quote >= opened).then_some(quote)
}

/// An edge whose ends are still ids.
struct Arrow<'t> {
    source: &'t [u8],
    target: &'t [u8],
    attributes: &'t [u8],
    line: usize,
}

struct Reader<'t> {
    graph: Graph,
    /// The clusters around the current line.
    open: Vec<usize>,
    arrows: Vec<Arrow<'t>>,
}

impl<'t> Reader<'t> {
    fn begin_cluster(&mut self, rest: &[u8]) {
        let id = rest.split(|byte| byte.is_ascii_whitespace() || *byte == b'{').next().unwrap_or_default();
        self.graph.clusters.push(Cluster {
            id: String::from_utf8_lossy(id).into_owned(),
            label: Vec::new(),
            nodes: Vec::new(),
        });
        self.open.push(self.graph.clusters.len() - 1);
    }

    fn statement(&mut self, line: usize, statement: &'t [u8]) {
        if let Some(label) = statement.strip_prefix(b"label=\"") {
            let label = label.strip_suffix(b"\";").unwrap_or(label);
            // 4.1 calls the graph of an adopted module so.
            let label = label.strip_prefix(b"AdoptedModule: ").unwrap_or(label);
            if let Some(&cluster) = self.open.last() {
                self.graph.clusters[cluster].label = label.to_vec();
            }
            return;
        }
        if statement.starts_with(b"color=") || statement.starts_with(b"compound=") {
            return;
        }
        let id = statement.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let (id, rest) = statement.split_at(id);
        let understood = id.starts_with(b"p0x")
            && match rest.first() {
                Some(b'[') => self.node(id, rest).is_some(),
                _ => self.arrow(id, rest, line).is_some(),
            };
        if !understood {
            self.strange(line, statement);
        }
    }

    fn node(&mut self, id: &[u8], rest: &[u8]) -> Option<()> {
        let cluster = *self.open.last()?;
        let label_at = memchr::memmem::find(rest, b"label=\"")? + b"label=\"".len();
        let end = label_end(rest)?;
        let (before, label, after) = (&rest[..label_at], rest.get(label_at..end)?, &rest[end..]);
        let has = |shape: &[u8]| [before, after].iter().any(|part| memchr::memmem::find(part, shape).is_some());
        let shape = if has(b"shape=box3d") {
            Shape::Module
        } else if has(b"shape=diamond") {
            Shape::Condition
        } else if has(b"shape=folder") {
            Shape::Cuda
        } else {
            Shape::Plain
        };
        let label = [&b"\\npriority: HIGH"[..], b"\\npriority: NORMAL", b"\\npriority: LOW"]
            .iter()
            .find_map(|suffix| label.strip_suffix(*suffix))
            .unwrap_or(label);
        let (name, module) = if shape == Shape::Module { split_module(label) } else { (label, None) };
        // To 3.2 an unnamed module is labelled with the bare address.
        let unnamed = name == id || name == &id[1..];
        self.graph.clusters[cluster].nodes.push(self.graph.nodes.len());
        self.graph.nodes.push(Node {
            id: String::from_utf8_lossy(id).into_owned(),
            name: if unnamed { Vec::new() } else { name.to_vec() },
            shape,
            cluster,
            module: module.map(<[u8]>::to_vec),
        });
        Some(())
    }

    fn arrow(&mut self, source: &'t [u8], rest: &'t [u8], line: usize) -> Option<()> {
        let rest = rest.trim_ascii_start().strip_prefix(b"->")?.trim_ascii_start();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let (target, attributes) = rest.split_at(length);
        if !target.starts_with(b"p0x") || !attributes.ends_with(b";") {
            return None;
        }
        self.arrows.push(Arrow { source, target, attributes, line });
        Some(())
    }

    fn strange(&mut self, line: usize, statement: &[u8]) {
        self.graph.strange += 1;
        self.graph
            .strange_example
            .get_or_insert_with(|| (line, String::from_utf8_lossy(&statement[..statement.len().min(80)]).into_owned()));
    }

    /// Edges may come before the nodes that they lead to, so ids become nodes only now.
    fn finish(mut self) -> Graph {
        let mut by_id: HashMap<Vec<u8>, usize> = HashMap::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            by_id.entry(node.id.clone().into_bytes()).or_insert(index);
        }
        for arrow in std::mem::take(&mut self.arrows) {
            let (Some(&source), Some(&target)) = (by_id.get(arrow.source), by_id.get(arrow.target)) else {
                self.strange(arrow.line, b"an edge to or from a task that is no node");
                continue;
            };
            let has = |text: &[u8]| memchr::memmem::find(arrow.attributes, text).is_some();
            let nodes = &self.graph.nodes;
            let kind = if has(b"color=blue") || nodes[source].cluster != nodes[target].cluster {
                EdgeKind::Join
            } else if has(b"style=dashed") {
                EdgeKind::Weak
            } else {
                EdgeKind::Dependency
            };
            let branch = memchr::memmem::find(arrow.attributes, b"label=\"").filter(|_| kind == EdgeKind::Weak);
            let branch = branch.and_then(|at| arrow.attributes[at + 7..].split(|byte| *byte == b'"').next());
            self.graph.edges.push(Edge {
                source,
                target,
                kind,
                branch: branch.map(|branch| String::from_utf8_lossy(branch).into_owned()),
                line: arrow.line,
            });
        }
        self.graph
    }
}

/// `M [m1]` is the module task `M` of graph `m1`.
fn split_module(label: &[u8]) -> (&[u8], Option<&[u8]>) {
    let split = label.strip_suffix(b"]").and_then(|inner| {
        let open = memchr::memmem::rfind(inner, b" [")?;
        let module = &inner[open + 2..];
        let numbered = module.strip_prefix(b"m").is_some_and(|k| !k.is_empty() && k.iter().all(u8::is_ascii_digit));
        (numbered || module.starts_with(b"Taskflow: ")).then_some((&label[..open], Some(module)))
    });
    split.unwrap_or((label, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(graph: &Graph) -> Vec<String> {
        graph.nodes.iter().map(|node| String::from_utf8_lossy(&node.name).into_owned()).collect()
    }

    #[test]
    fn names_are_taken_as_they_are() {
        let graph = Graph::parse(
            b"digraph Taskflow {\nsubgraph cluster_p0x1 {\nlabel=\"Taskflow: odd \"names\"\";\n\
              p0xa[label=\"say \"hi\"\" ];\np0xa -> p0xb;\np0xb[label=\"line\nbreak\" ];\np0xb -> p0xc;\n\
              p0xc[label=\"p0xc\" ];\np0xd[label=\"why? ];\" shape=diamond color=black fillcolor=aquamarine style=filled];\n\
              p0xe[label=\"ends];\nand goes on\\npriority: LOW\" ];\n}\n}\n",
        );
        assert_eq!(names(&graph), ["say \"hi\"", "line\nbreak", "", "why? ];", "ends];\nand goes on"]);
        assert_eq!((graph.strange, graph.edges.len(), graph.closed), (0, 2, true));
        assert_eq!(graph.nodes[3].shape, Shape::Condition);
        assert_eq!(graph.edges[1].line, 8);
    }

    #[test]
    fn edges_out_of_a_graph_are_joins() {
        let graph = Graph::parse(
            b"digraph Taskflow {\n  compound=true;\n  subgraph cluster_p0x1 {\n    label=\"Taskflow: t\";\n    p0xa[label=\"S\" ];\n    \
              p0xa -> p0xb;\n    subgraph cluster_p0xa {\n      label=\"Subflow: S\";\n      color=blue;\n      p0xc[label=\"c\" ];\n    }\n    \
              p0xc -> p0xa [ltail=cluster_p0xa style=dashed color=blue];\n    p0xb[label=\"b\" shape=diamond ];\n    p0xb -> p0xa [style=dashed label=\"0\"];\n  }\n}\n",
        );
        let kinds: Vec<EdgeKind> = graph.edges.iter().map(|edge| edge.kind).collect();
        assert_eq!(kinds, [EdgeKind::Dependency, EdgeKind::Join, EdgeKind::Weak]);
        assert_eq!(graph.edges[2].branch.as_deref(), Some("0"));
        assert_eq!(graph.subflow_tasks(), [None, Some(0)]);
        assert_eq!(graph.strange, 0);
    }

    #[test]
    fn modules_find_their_graphs() {
        let graph = Graph::parse(
            b"digraph Taskflow {\nsubgraph cluster_p0x1 {\nlabel=\"Taskflow: t\";\np0xa[shape=box3d, color=blue, label=\"M\"];\n\
              p0xa->p0xb;\np0xb[shape=box3d, color=blue, label=\"p0xb [m1]\"];\np0xc[shape=box3d, color=blue, label=\"EM\"];\n\
              p0xd[shape=box3d, color=blue, label=\"0xd [Taskflow: old]\"];\n}\n\
              subgraph cluster_p0x2 {\nlabel=\"EM\";\n}\nsubgraph cluster_p0x3 {\nlabel=\"M\";\np0xe[label=\"m0\" ];\n}\n\
              subgraph cluster_p0x4 {\nlabel=\"Taskflow: old\";\n}\n}\n",
        );
        assert_eq!(names(&graph), ["M", "", "EM", "", "m0"]);
        assert_eq!(graph.module_clusters(), [Some(2), Some(2), Some(1), Some(3), None]);
    }

    #[test]
    fn damage_is_counted() {
        let graph = Graph::parse(b"digraph Taskflow {\nsubgraph cluster_p0x1 {\nlabel=\"Taskflow: t\";\np0xa[label=\"a\" ];\np0xa -> p0xz;\nnonsense\np0xb[label=\"b");
        assert_eq!((graph.nodes.len(), graph.edges.len(), graph.strange, graph.closed), (1, 0, 3, false));
        assert_eq!(graph.statements(), 4);
    }
}
