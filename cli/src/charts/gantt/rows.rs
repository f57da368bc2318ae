//! A Gantt chart from a complete answer: needs `start` and `finish`, uses `run`, `location`, `name`, `kind`, `role` and `on_path`
//! if present.

use super::{Gantt, LaneOrder, Span};
use crate::charts::ChartError;
use crate::charts::data::{Data, Words};

pub(crate) fn draw(title: &str, data: &Data<'_>) -> Result<String, ChartError> {
    const KIND: &str = "gantt";
    let fixed = |column| Ok(("", data.fixed(KIND, column)?));
    let (starts, finishes) = (data.numbers(fixed("start")?)?.values, data.numbers(fixed("finish")?)?.values);
    let words = |column| data.words_if("", data.fixed(KIND, column).ok());
    let (runs, locations, names, kinds) = (words("run")?, words("location")?, words("name")?, words("kind")?);
    let (roles, on_path) = (words("role")?, words("on_path")?);
    let mut order: Vec<usize> = (0..starts.len()).collect();
    // The longer of two that start together comes first, so that what it encloses goes below it.
    order.sort_by(|&a, &b| starts[a].total_cmp(&starts[b]).then_with(|| finishes[b].total_cmp(&finishes[a])));
    let mut gantt = Gantt::new(data.tick);
    for row in order {
        let times =
            (!starts[row].is_nan() && !finishes[row].is_nan()).then_some((starts[row] as i64, finishes[row] as i64));
        gantt.add(Span {
            run: word(&runs, row),
            location: word(&locations, row),
            name: word(&names, row),
            kind: word(&kinds, row),
            role: word(&roles, row),
            times,
            on_path: word(&on_path, row) == "true",
        });
    }
    Ok(gantt.draw(title, &LaneOrder::default(), data.names))
}

fn word(words: &Option<Words>, row: usize) -> &str {
    words.as_ref().map_or("", |words| words.words[words.codes[row] as usize].as_str())
}
