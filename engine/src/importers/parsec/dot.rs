//! The task graph of `--mca profile_dot`: one statement a line, printed while the program runs.
//!
//! ```text
//! digraph G {
//! TRSM_2_1_0 [shape="polygon",label="<1/0> TRSM(1, 0)[1, 0]<240> keys = {0} {tp: 2}",tooltip="tpid=2:tcid=1:tcname=TRSM:tid=0"];
//! POTRF_2_0 -> TRSM_2_1_0 [label="T=>T",color="#00FF00",style="dashed"]      a dependency; green: the last one to arrive
//! dc0x7fff2581af40_1 [label="A(1, 0)",shape="circle"]                         a tile, with memory traced
//! dc0x7fff2581af40_1 -> TRSM_2_1_0 [label="C"]                                its use
//! }
//! ```
//! A node stands in the file of the rank that executed it, an edge in the file of the rank of its target. Names are not quoted, and
//! with a negative parameter (`X_2_-1`) they are not valid DOT identifiers, so a name ends at a blank. A killed run lacks the `}`.
//! `dotted` means control; the other styles mean nothing. PaRSEC writes at most [`NAMES_OF_EDGE`] bytes of names per edge; a longer
//! target is truncated, and is matched with the nodes by what is left of its name. Tiles make cycles (task → tile → task), so they
//! are counted and left out.

use crate::trace::{Stats, Words, findings};

const OPENING: &[u8] = b"digraph G {";

/// How many bytes source and target of an edge have together at most.
const NAMES_OF_EDGE: usize = 119;

/// Whether these are the first bytes of a task graph of PaRSEC.
pub(super) fn recognise(head: &[u8], is_whole: bool) -> bool {
    let Some(body) = head.trim_ascii_start().strip_prefix(OPENING) else { return false };
    let has = |text: &[u8]| memchr::memmem::find(body, text).is_some();
    // A rank that executed nothing writes an empty graph.
    let is_empty = is_whole && matches!(body.trim_ascii(), b"" | b"}");
    is_empty || has(b"tooltip=\"tpid=") || (has(b"=>") && has(b"\",color=\"#")) || has(b",shape=\"circle\"]")
}

/// The graph of one file. Names of tasks are numbers here: the places in `names`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Each name once.
    pub(super) names: Words,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// Classes and flows.
    pub(super) words: Words,
}

/// A task that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: i32,
    pub(super) taskpool: u32,
    pub(super) class_number: i64,
    pub(super) class: i32,
    pub(super) id: u64,
    pub(super) thread: u32,
    pub(super) virtual_process: u32,
}

/// A dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) source: i32,
    pub(super) target: i32,
    pub(super) flow: i32,
    /// Its arrival made the target ready.
    pub(super) is_last: bool,
    pub(super) is_control: bool,
}

impl Graph {
    /// Reads a file. What is no statement of a task graph is counted.
    pub(super) fn parse(text: &[u8], stats: &mut Stats) -> Graph {
        let mut graph = Graph::default();
        let mut reader = Reader {
            graph: &mut graph,
            is_node: Vec::new(),
            cut: Vec::new(),
            last_source: (&[], -1),
            last_flow: (&[], -1),
        };
        let (mut from, mut line_number, mut closed) = (0, 0u64, false);
        let mut records = 0;
        while from < text.len() {
            let end = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |length| from + length);
            let line = text[from..end].trim_ascii();
            from = end + 1;
            line_number += 1;
            match line {
                b"" | OPENING => continue,
                b"}" => {
                    closed = true;
                    continue;
                }
                _ => {}
            }
            let mut rest = line;
            while !rest.is_empty() {
                let statement;
                (statement, rest) = first_statement(rest);
                records += 1;
                match reader.statement(statement) {
                    Some(Statement::Node | Statement::Edge) => {}
                    Some(Statement::Repeated) => {
                        stats.left_out(findings::DOT_NODE_REPEATED, 1, || shown(line_number, statement));
                    }
                    Some(Statement::Data) => stats.left_out(findings::DOT_DATA, 1, || shown(line_number, statement)),
                    None => stats.left_out(findings::DOT_BAD_LINE, 1, || shown(line_number, statement)),
                }
            }
        }
        reader.find_cut_targets(stats);
        stats.records(records);
        stats.note(findings::DOT_UNCLOSED, u64::from(!closed), || {
            "no closing brace: the run was killed, or still wrote".to_owned()
        });
        graph
    }
}

fn shown(number: u64, line: &[u8]) -> String {
    format!("line {number}: {}", String::from_utf8_lossy(&line[..line.len().min(80)]))
}

enum Statement {
    Node,
    Edge,
    /// A node that was there before.
    Repeated,
    /// A tile, or an edge from or to one.
    Data,
}

struct Reader<'g, 't> {
    graph: &'g mut Graph,
    /// By name: whether it is a node already.
    is_node: Vec<bool>,
    /// Edges whose target may be cut, and that target.
    cut: Vec<(Edge, &'t [u8])>,
    /// Edges of one source mostly follow each other, and flows repeat.
    last_source: (&'t [u8], i32),
    last_flow: (&'t [u8], i32),
}

impl<'t> Reader<'_, 't> {
    fn statement(&mut self, line: &'t [u8]) -> Option<Statement> {
        let (name, rest) = word(line)?;
        if let Some(rest) = rest.strip_prefix(b"-> ") {
            return self.edge(name, rest);
        }
        if !rest.starts_with(b"[") {
            return None;
        }
        match memchr::memmem::rfind(rest, b"tooltip=\"tpid=") {
            Some(at) => self.node(name, &rest[..at], &rest[at + 14..]),
            None => rest.ends_with(b",shape=\"circle\"]").then_some(Statement::Data),
        }
    }

    fn edge(&mut self, source: &'t [u8], rest: &'t [u8]) -> Option<Statement> {
        let (target, attributes) = word(rest)?;
        let attributes = attributes.strip_prefix(b"[label=\"")?;
        let quote = memchr::memchr(b'"', attributes)?;
        let (flow, rest) = attributes.split_at(quote);
        let Some(rest) = rest.strip_prefix(b"\",color=\"#") else {
            return (rest == b"\"]").then_some(Statement::Data);
        };
        let (color, style) = rest.split_at_checked(6)?;
        let style = style.strip_prefix(b"\",style=\"")?.strip_suffix(b"\"]")?;
        if source != self.last_source.0 {
            self.last_source = (source, self.intern(source));
        }
        if flow != self.last_flow.0 {
            self.last_flow = (flow, self.graph.words.intern(&String::from_utf8_lossy(flow)));
        }
        let is_cut = source.len() + target.len() == NAMES_OF_EDGE;
        let edge = Edge {
            source: self.last_source.1,
            target: if is_cut { -1 } else { self.intern(target) },
            flow: self.last_flow.1,
            is_last: color.eq_ignore_ascii_case(b"00ff00"),
            is_control: style == b"dotted",
        };
        match is_cut {
            true => self.cut.push((edge, target)),
            false => self.graph.edges.push(edge),
        }
        Some(Statement::Edge)
    }

    /// Targets stand in the file of their edges: a cut one is the node whose name begins so, if no other does.
    fn find_cut_targets(&mut self, stats: &mut Stats) {
        if self.cut.is_empty() {
            return;
        }
        let graph = &mut *self.graph;
        let mut nodes: Vec<(&str, i32)> =
            graph.nodes.iter().map(|node| (graph.names.word(node.name), node.name)).collect();
        nodes.sort_unstable();
        for (edge, target) in self.cut.drain(..) {
            let text = String::from_utf8_lossy(target);
            let from = nodes.partition_point(|(name, _)| *name < &*text);
            match &nodes[from..] {
                [(name, node), ..] if *name == text => graph.edges.push(Edge { target: *node, ..edge }),
                [(name, node), rest @ ..]
                    if name.starts_with(&*text) && !rest.first().is_some_and(|(next, _)| next.starts_with(&*text)) =>
                {
                    graph.edges.push(Edge { target: *node, ..edge });
                }
                _ => stats.left_out(findings::DOT_NAME_CUT, 1, || {
                    format!("{text} begins the names of several nodes, or of none")
                }),
            }
        }
    }

    fn node(&mut self, name: &'t [u8], label: &'t [u8], tooltip: &'t [u8]) -> Option<Statement> {
        // tpid=2:tcid=1:tcname=TRSM:tid=0"];
        let (taskpool, rest) = field(tooltip, b":tcid=")?;
        let (class_number, rest) = field(rest, b":tcname=")?;
        let (class, rest) = field(rest, b":tid=")?;
        let (id, _) = field(rest, b"\"]")?;
        let thread = memchr::memmem::find(label, b"label=\"<").map(|at| &label[at + 8..]);
        let place = thread.and_then(|text| {
            let (thread, rest) = field(text, b"/")?;
            Some((number(thread)?, number(field(rest, b">")?.0)?))
        });
        let (thread, virtual_process) = place?;
        let node = Node {
            taskpool: number(taskpool)?,
            class_number: number(class_number)?,
            id: number(id)?,
            name: self.intern(name),
            class: self.graph.words.intern(&String::from_utf8_lossy(class)),
            thread,
            virtual_process,
        };
        if self.is_node.len() < self.graph.names.len() {
            self.is_node.resize(self.graph.names.len(), false);
        }
        if std::mem::replace(&mut self.is_node[node.name as usize], true) {
            return Some(Statement::Repeated);
        }
        self.graph.nodes.push(node);
        Some(Statement::Node)
    }

    fn intern(&mut self, name: &[u8]) -> i32 {
        self.graph.names.intern(&String::from_utf8_lossy(name))
    }
}

/// A statement, and what is behind it: threads that print at once may glue two lines.
fn first_statement(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = memchr::memmem::find(line, b"\"]").map(|at| at + 2) else { return (line, b"") };
    let rest = &line[end..];
    (&line[..end], rest.strip_prefix(b";").unwrap_or(rest).trim_ascii_start())
}

/// Up to the first blank, and what is behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = memchr::memchr(b' ', text).filter(|at| *at > 0)?;
    Some((&text[..blank], &text[blank + 1..]))
}

/// Up to a mark, and what is behind it.
fn field<'t>(text: &'t [u8], mark: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = memchr::memchr_iter(mark[0], text).find(|at| text[*at..].starts_with(mark))?;
    Some((&text[..at], &text[at + mark.len()..]))
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Graph, Stats) {
        let mut stats = Stats::default();
        let graph = Graph::parse(text.as_bytes(), &mut stats);
        (graph, stats)
    }

    #[test]
    fn statements_of_every_version_are_read() {
        let (graph, stats) = parse(
            "digraph G {\n\
             dc0x7fff_0 [label=\"A(0, 0)\",shape=\"circle\"]\n\
             X_2_-1 [shape=\"polygon\",label=\"<3/1> X(-1)[-1[, 5]]<0> keys = {*} {tp: 2}\",tooltip=\"tpid=2:tcid=0:tcname=X:tid=18446744073709551615\"];\n\
             dc0x7fff_0 -> X_2_-1 [label=\"T\"]\n\
             X_2_-1 -> Gemm_1_10 [label=\"ctl=>ctl\",color=\"#00FF00\",style=\"dotted\"]\n\
             Gemm_1_10 [shape=\"polygon\",label=\"<0/0> Gemm(2, 1, 0, _, _, _)\",tooltip=\"tpid=1:tcid=3:tcname=Gemm:tid=10\"];\n}\n",
        );
        let node = &graph.nodes[0];
        assert_eq!(
            (graph.names.word(node.name), node.id, node.thread, node.virtual_process),
            ("X_2_-1", u64::MAX, 3, 1)
        );
        let edge = graph.edges[0];
        assert_eq!((graph.words.word(edge.flow), edge.is_last, edge.is_control), ("ctl=>ctl", true, true));
        assert_eq!((graph.nodes.len(), graph.edges.len(), graph.names.len()), (2, 1, 2));
        assert_eq!(
            (stats.count(findings::DOT_DATA), stats.count(findings::DOT_BAD_LINE), stats.count(findings::DOT_UNCLOSED)),
            (2, 0, 0)
        );
    }

    #[test]
    fn cut_targets_are_found_among_the_nodes() {
        let class = "a".repeat(70);
        let node = |number: &str| {
            format!(
                "{class}_{number} [shape=\"polygon\",label=\"<0/0> A(0)\",tooltip=\"tpid=2:tcid=0:tcname=A:tid={number}\"];\n"
            )
        };
        // Both names have 119 bytes together: the target is cut, as in front of `7_1`, or is what it seems to be.
        let edge = |source: usize, target: &str| {
            let source = "s".repeat(source);
            format!("{source} -> {target} [label=\"T=>T\",color=\"#00FF00\",style=\"dotted\"]\n")
        };
        let cut = format!("{class}_7");
        let text = [
            edge(47, &cut),
            edge(49, &class),
            edge(46, &format!("{class}_80")),
            edge(40, &cut),
            node("7123"),
            node("80"),
            node("801"),
        ];
        let (graph, stats) = parse(&format!("digraph G {{\n{}}}\n", text.concat()));
        let targets: Vec<&str> = graph.edges.iter().map(|edge| &graph.names.word(edge.target)[70..]).collect();
        assert_eq!(targets, ["_7", "_7123", "_80"]);
        assert_eq!(stats.count(findings::DOT_NAME_CUT), 1);
    }

    #[test]
    fn glued_statements_are_told_apart() {
        let edge = "A_1_0 -> B_1_0 [label=\"T=>T\",color=\"#00FF00\",style=\"dotted\"]";
        let node = "A_1_0 [shape=\"polygon\",label=\"<0/0> A(0)[0]<1>\",tooltip=\"tpid=1:tcid=0:tcname=A:tid=0\"];";
        let (graph, stats) = parse(&format!("digraph G {{\n{edge}{node}\n{node}{edge}\n{edge} nonsense\n}}\n"));
        assert_eq!((graph.nodes.len(), graph.edges.len()), (1, 3));
        assert!(graph.edges.iter().all(|edge| edge.is_control));
        assert_eq!((stats.count(findings::DOT_NODE_REPEATED), stats.count(findings::DOT_BAD_LINE)), (1, 1));
    }

    #[test]
    fn damage_is_counted() {
        let (graph, stats) = parse(
            "digraph G {\nA_1_0 -> B_1_0 [label=\"T=>T\",color=\"#00FF00\",sty\nnonsense\n\
             A_1_0 [shape=\"polygon\",label=\"<0/0> A(0)\",tooltip=\"tpid=1:tcid=0:tcname=A:tid=0\"];\n\
             A_1_0 [shape=\"polygon\",label=\"<0/0> A(0)\",tooltip=\"tpid=1:tcid=0:tcname=A:tid=0\"];\n\
             A_1_1 [shape=\"polygon\",label=\"<0/0> A(1)\",tooltip=\"tpid=1:tcid=0:tcn",
        );
        assert_eq!((graph.nodes.len(), graph.edges.len()), (1, 0));
        assert_eq!(
            (
                stats.count(findings::DOT_BAD_LINE),
                stats.count(findings::DOT_NODE_REPEATED),
                stats.count(findings::DOT_UNCLOSED)
            ),
            (3, 1, 1)
        );
    }

    #[test]
    fn graphs_of_others_are_not_ours() {
        assert!(!recognise(b"digraph G {\n  a -> b;\n}\n", true));
        assert!(!recognise(b"digraph Taskflow {\n", false));
        assert!(recognise(b"digraph G {\n}\n", true));
        assert!(recognise(b"digraph G {\nA_1_0 -> B_1_0 [label=\"T=>T\",color=\"#00FF00\",style=\"dashed\"]\n", false));
    }
}
