//! The three most useful things about a run, in plain words.

use tq_udfs::ticks::time_text;

use super::sections::{RunAnswers, code};

/// From this share of the makespan on, the critical path bounds the run.
const BOUND: f64 = 0.9;

/// How long and how full; what took the time; what bounds it.
pub(super) fn facts(answers: &RunAnswers) -> Vec<String> {
    if answers.tasks == 0 {
        return vec!["The trace holds no tasks.".to_owned()];
    }
    let mut facts = vec![how_full(answers)];
    facts.extend(what_took_the_time(answers));
    facts.extend(what_bounds(answers));
    facts
}

fn how_full(answers: &RunAnswers) -> String {
    let Some(makespan) = answers.makespan else {
        return format!("Its {} tasks are known without times.", answers.tasks);
    };
    let took =
        format!("The run took **{}** from its first start to its last finish", time_text(makespan, answers.tick));
    match &answers.lanes {
        Some(lanes) if makespan > 0 && lanes.count > 0 => {
            let percent = 100.0 * lanes.busy as f64 / (lanes.count as f64 * makespan as f64);
            let who = if lanes.count == 1 {
                "its one location was".to_owned()
            } else {
                format!("its {} locations were", lanes.count)
            };
            format!("{took}; {who} busy for **{percent:.1} %** of that.")
        }
        _ => format!("{took}."),
    }
}

fn what_took_the_time(answers: &RunAnswers) -> Option<String> {
    let heaviest = answers.heaviest.as_ref()?;
    let tasks = if heaviest.tasks == 1 { "one task".to_owned() } else { format!("{} tasks", heaviest.tasks) };
    let mut fact = format!(
        "Most task time went into {}: {:.1} %, {} in {tasks}.",
        code(&heaviest.name),
        heaviest.percent,
        time_text(heaviest.total_time, answers.tick)
    );
    if let Some(longest) = &answers.longest {
        let on = if longest.location.is_empty() { String::new() } else { format!(" on {}", code(&longest.location)) };
        fact.push_str(&format!(
            " The longest single task, {}{on}, took {}.",
            code(&longest.name),
            time_text(longest.duration, answers.tick)
        ));
    }
    Some(fact)
}

fn what_bounds(answers: &RunAnswers) -> Option<String> {
    let makespan = answers.makespan.filter(|&makespan| makespan > 0)?;
    if let Some(path) = &answers.path {
        let share = path.path_time as f64 / makespan as f64;
        let length = format!(
            "The longest chain of dependent tasks ({} steps) takes {}, **{:.1} %** of the makespan",
            path.steps,
            time_text(path.path_time, answers.tick),
            100.0 * share
        );
        return Some(if share >= BOUND {
            format!("{length}: the dependencies bound this run, more workers would hardly make it shorter.")
        } else {
            format!(
                "{length}: the dependencies alone would allow a run {:.1} × as fast; the rest is waiting, imbalance or overhead.",
                1.0 / share.max(1e-9)
            )
        });
    }
    let lanes = answers.lanes.as_ref().filter(|lanes| lanes.count > 1)?;
    Some(format!(
        "The work is {} over its locations: the busiest, {}, worked {}, **{:.2} ×** the mean.",
        if lanes.imbalance < 1.1 { "spread evenly" } else { "spread unevenly" },
        code(&lanes.busiest),
        time_text(lanes.busiest_busy, answers.tick),
        lanes.imbalance
    ))
}
