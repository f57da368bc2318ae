//! Messages: matches the two sides of a payload with each other, and with the tasks that produce and consume it.
//!
//! ```text
//! rank 0   TRSM_2_1_0 ──► [MPI_DATA_PLD_SND]                               kind mpi: send_time = its begin
//! rank 1             [MPI_DATA_CTL]                                        kind control: the request for the data
//! rank 1           [MPI_DATA_PLD_RCV        ] ──► GEMM_2_3_1_0             receive_time = its end
//! ```
//! Both sides name source, target, the producing task and which of its outputs: in every recording seen, that matches them one to
//! one. Times cannot help, since the receiver asks before the sender sends. A broadcast is relayed along a tree: a relaying rank
//! has no producer, but has received the payload itself.

use hashbrown::{HashMap, HashSet};

use super::dot::Graph;
use super::executions::{Joined, NONE, TaskKey, Tasks};
use super::rank::{MessageKey, Rank};
use super::types::Class;
use crate::error::ImportError;
use crate::tables;
use crate::trace::{RunBuilder, findings};

/// A message between two ranks, by the rows of its tasks.
#[derive(Debug)]
struct Message {
    key: MessageKey,
    kind: &'static str,
    tag: &'static str,
    bytes: Option<i64>,
    send: Option<(i64, i64)>,
    receive: Option<(i64, i64)>,
}

/// Messages of a run and the links from producers to sends and from receipts to consumers.
#[derive(Default)]
pub(super) struct Messages {
    messages: Vec<Message>,
    pub(super) links: Vec<(i64, i64)>,
}

/// Matches the transfers of all ranks. Rows are counted from `first_rows`.
pub(super) fn match_transfers(ranks: &[&Rank], first_rows: &[Vec<i64>], builder: &mut RunBuilder) -> Messages {
    let mut messages = Vec::new();
    // Several messages of one key, if there ever are, meet in their order.
    let mut receipts: HashMap<MessageKey, std::collections::VecDeque<usize>> = HashMap::new();
    let mut sends = Vec::new();
    for (index, rank) in ranks.iter().enumerate() {
        for transfer in &rank.transfers {
            let lane = &rank.lanes[transfer.lane as usize];
            let row = transfer.row as usize;
            let position = first_rows[index][transfer.lane as usize] + i64::from(transfer.row);
            let begin = Some((position, lane.starts[row]));
            let mut message = Message {
                key: transfer.key,
                kind: "control",
                tag: "MPI_ACTIVATE",
                bytes: transfer.bytes,
                send: begin,
                receive: None,
            };
            match transfer.class {
                Class::Send => {
                    (message.kind, message.tag) = ("mpi", "MPI_DATA_PLD");
                    sends.push(messages.len());
                }
                Class::Receive => {
                    (message.kind, message.tag) = ("mpi", "MPI_DATA_PLD");
                    (message.send, message.receive) = (None, Some((position, lane.finishes[row])));
                    receipts.entry(transfer.key).or_default().push_back(messages.len());
                }
                // The receiver asks the sender; its size is that of the data it asks for, not its own.
                Class::Control => {
                    (message.tag, message.bytes) = ("MPI_DATA_CTL", None);
                    message.key =
                        MessageKey { source: transfer.key.target, target: transfer.key.source, ..transfer.key };
                }
                _ => {}
            }
            messages.push(message);
        }
    }
    let mut taken = HashSet::new();
    for send in sends {
        match receipts.get_mut(&messages[send].key).and_then(std::collections::VecDeque::pop_front) {
            Some(receipt) => {
                messages[send].receive = messages[receipt].receive;
                taken.insert(receipt);
            }
            None => builder.stats.note(findings::SEND_WITHOUT_RECEIVE, 1, || shown(&messages[send].key)),
        }
    }
    for key in receipts.iter().flat_map(|(key, left)| left.iter().map(move |_| key)) {
        builder.stats.note(findings::RECEIVE_WITHOUT_SEND, 1, || shown(key));
    }
    let mut number = 0;
    messages.retain(|_| {
        number += 1;
        !taken.contains(&(number - 1))
    });
    Messages { messages, links: Vec::new() }
}

fn shown(key: &MessageKey) -> String {
    format!(
        "from rank {} to rank {}, output {} of task {} of class {} in taskpool {}",
        key.source, key.target, key.output, key.id, key.class_number, key.taskpool
    )
}

impl Messages {
    /// Ranks that messages name.
    pub(super) fn ranks(&self) -> impl Iterator<Item = i64> {
        self.messages.iter().flat_map(|message| [message.key.source, message.key.target])
    }

    /// Links producers to sends, receipts to relays, and receipts to consumers.
    pub(super) fn link(&mut self, ranks: &[&Rank], tasks: &Tasks, joined: &Joined, graphs: &[(usize, &Graph)]) {
        let place_of: HashMap<i64, u32> =
            ranks.iter().enumerate().map(|(index, rank)| (rank.rank, index as u32)).collect();
        let task = |rank: i64, key: &MessageKey| {
            let rank = *place_of.get(&rank)?;
            tasks.find(&TaskKey { rank, taskpool: key.taskpool, class_number: key.class_number, id: key.id })
        };
        let payloads = || self.messages.iter().filter(|message| message.kind == "mpi");
        // What a rank has received, by producer and output.
        let mut received: HashMap<(i64, u32, u32, u64, i64), i64> = HashMap::new();
        let mut producers: HashSet<i32> = HashSet::new();
        for message in payloads() {
            let key = message.key;
            if let Some((row, _)) = message.receive {
                received.insert((key.target, key.taskpool, key.class_number, key.id, key.output), row);
            }
            if let Some(producer) = producer_place(&place_of, tasks, &key) {
                producers.insert(producer);
            }
        }
        let mut consumers: HashMap<(i32, u32), Vec<i64>> = HashMap::new();
        for (index, (_, graph)) in graphs.iter().enumerate() {
            for edge in &graph.edges {
                let (source, target) =
                    (joined.places[index][edge.source as usize], joined.places[index][edge.target as usize]);
                let rank = joined.ranks[target as usize];
                if rank != joined.ranks[source as usize] && producers.contains(&source) {
                    consumers.entry((source, rank)).or_default().push(joined.first[target as usize]);
                }
            }
        }
        let mut links = Vec::new();
        for message in payloads() {
            let key = message.key;
            if let Some((row, _)) = message.send {
                let relayed = (key.source, key.taskpool, key.class_number, key.id, key.output);
                let produced = task(key.source, &key).map(|producer| tasks.all[producer].last);
                links.extend(produced.or_else(|| received.get(&relayed).copied()).map(|from| (from, row)));
            }
            let consumers = place_of.get(&key.target).and_then(|rank| {
                let producer = producer_place(&place_of, tasks, &key)?;
                consumers.get(&(producer, *rank))
            });
            if let Some((row, _)) = message.receive {
                links.extend(consumers.into_iter().flatten().map(|consumer| (row, *consumer)));
            }
        }
        links.sort_unstable();
        links.dedup();
        self.links = links;
    }

    /// Fills the table. Each message stands for intervals that are rows of `tasks`, so it is no record of its own.
    pub(super) fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        let args = |message: &Message| {
            let MessageKey { taskpool, class_number, id, output, .. } = message.key;
            format!(r#"{{"tpid":{taskpool},"tcid":{class_number},"tid":{id},"dep":{output}}}"#)
        };
        let finished = |time: i64| (time != super::rank::UNFINISHED).then_some(time);
        let all = || self.messages.iter();
        builder.append_derived(tables::Messages {
            source: all().map(|message| format!("rank {}", message.key.source)).collect(),
            target: all().map(|message| format!("rank {}", message.key.target)).collect(),
            source_task: all().map(|message| message.send.map(|(row, _)| row)).collect(),
            target_task: all().map(|message| message.receive.map(|(row, _)| row)).collect(),
            send_time: all().map(|message| message.send.map(|(_, time)| time)).collect(),
            receive_time: all().map(|message| message.receive.and_then(|(_, time)| finished(time))).collect(),
            bytes: all().map(|message| message.bytes).collect(),
            count: 1.into(),
            kind: all().map(|message| message.kind).collect(),
            tag: all().map(|message| message.tag).collect(),
            args: all().map(args).collect(),
        })
    }
}

/// The place in the graphs of the task that produced a payload, on whichever rank it ran.
fn producer_place(place_of: &HashMap<i64, u32>, tasks: &Tasks, key: &MessageKey) -> Option<i32> {
    let on =
        |rank: u32| tasks.find(&TaskKey { rank, taskpool: key.taskpool, class_number: key.class_number, id: key.id });
    let source = place_of.get(&key.source).and_then(|rank| on(*rank));
    let producer = source.or_else(|| (0..place_of.len() as u32).find_map(on))?;
    Some(tasks.all[producer].place).filter(|place| *place != NONE)
}
