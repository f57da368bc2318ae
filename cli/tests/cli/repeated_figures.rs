//! The sentences of a page give figures that its sections repeat: a reader can look each of them up.

use regex::Regex;

use super::Place;

/// Traces whose pages have different sentences.
const TRACES: [&str; 22] = [
    "actorprof/quirks",
    "actorprof/triangle_range",
    "chrome/addmm_twice.json",
    "chrome/ddp_gloo",
    "chrome/jax_cpu_trace_viewer.json.gz",
    "chrome/kineto_tiny.json",
    "chrome/nccl_ranks",
    "chrome/node20_trace_events.json.gz",
    "chrome/slow_step.json",
    "chrome/torch215_cpu.json.gz",
    "daisen/queue_v49.sqlite3.zst",
    "daisen/virtualmem_v5.sqlite3.zst",
    "nsys/two_streams.sqlite",
    "parsec/async-1r",
    "parsec/chol24-4r",
    "parsec/chol8-1r",
    "parsec/graph_only.dot",
    "pascal/above_one.json",
    "pascal/regions.json",
    "pascal/sperf_whole_parallel_region_3.json",
    "table/render_log.csv",
    "tfprof/corun_40.tfp",
];

/// A figure of a text, and half of its last digit.
struct Figure {
    words: String,
    value: f64,
    half: f64,
}

/// The figures of `text`, times in seconds. A figure without a unit may be a column in per cent: it counts as its hundredth, too.
fn figures(text: &str) -> Vec<Figure> {
    let number = Regex::new(r"(?:^|[^\w.])(\d+(?:\.\d+)?)(?:\s(ps|ns|µs|ms|s|min|h)\b|\s(%))?").expect("a pattern");
    let mut found = Vec::new();
    for groups in number.captures_iter(text) {
        let digits = &groups[1];
        let unit = groups.get(2).or(groups.get(3)).map_or("", |unit| unit.as_str());
        let scale = match unit {
            "ps" => 1e-12,
            "ns" => 1e-9,
            "µs" => 1e-6,
            "ms" => 1e-3,
            "min" => 60.0,
            "h" => 3600.0,
            "%" => 0.01,
            _ => 1.0,
        };
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let value = digits.parse::<f64>().expect("a number") * scale;
        let half = 0.5 * 0.1_f64.powi(i32::try_from(decimals).expect("few digits")) * scale;
        found.push(Figure { words: format!("{digits} {unit}"), value, half });
        if unit.is_empty() {
            found.push(Figure { words: String::new(), value: value / 100.0, half: half / 100.0 });
        }
    }
    found
}

/// A page of `trace`: its sentences, and all else that it says, in its pictures, too.
fn sentences_and_sections(trace: &str) -> (String, String) {
    let place = Place::new();
    place.tq(&format!("report {}/../fixtures/{trace} -o page.md", env!("CARGO_MANIFEST_DIR")));
    let page = place.read("page.md");
    let (sentences, rest): (Vec<&str>, Vec<&str>) = page.lines().partition(|line| line.starts_with("- "));
    let mut sections = rest.join("\n");
    let markup = Regex::new(r"<[^>]*>").expect("a pattern");
    for file in std::fs::read_dir(place.0.path()).expect("a folder") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            let picture = std::fs::read_to_string(&path).expect("a picture");
            sections.push('\n');
            sections.push_str(&markup.replace_all(&picture, " "));
        }
    }
    (sentences.join("\n"), sections)
}

/// Names are full of numbers, which are no figures.
fn without_names(sentence: &str) -> String {
    let name =
        Regex::new(r"(rank|stream|GPU|PE|size|Run|step|#)\s?[\w./]+|[\w.]+(::|_|/|#)[\w./:#]*|\(see [^)]*\)|`[^`]*`")
            .expect("a pattern");
    name.replace_all(sentence, "…").into_owned()
}

/// The figures of sentences that the sections do not have, each with its sentence.
fn missing(sentences: &str, sections: &str) -> Vec<String> {
    let mut there = figures(sections);
    there.sort_by(|a, b| a.value.total_cmp(&b.value));
    let mut missing = Vec::new();
    for sentence in sentences.lines() {
        for figure in figures(&without_names(sentence)).iter().filter(|figure| !figure.words.is_empty()) {
            let half = figure.half * 1.000_001;
            let at = there.partition_point(|other| other.value < figure.value - half);
            if there.get(at).is_none_or(|other| other.value > figure.value + half) {
                missing.push(format!("{} of: {sentence}", figure.words));
            }
        }
    }
    missing
}

#[test]
fn figures_of_sentences_stand_in_the_sections() {
    let mut all = Vec::new();
    for trace in TRACES {
        let (sentences, sections) = sentences_and_sections(trace);
        assert!(!sentences.is_empty(), "{trace} has no sentences");
        all.extend(missing(&sentences, &sections).into_iter().map(|missing| format!("{trace}: {missing}")));
    }
    assert!(all.is_empty(), "sections do not repeat\n{}", all.join("\n"));
}

#[test]
fn a_figure_that_no_section_has_is_found() {
    let sections = "| busy | share |\n| 5.62 ms | 0.413 |\n| 12 s | 41.3 |";
    assert_eq!(missing("- It took 5.6 ms, 41.3 % of rank 7, see step 12", sections), Vec::<String>::new());
    assert_eq!(missing("- It took 5.7 ms, 41.4 % of it", sections).len(), 2);
    assert_eq!(missing("- It took 5.62 s", sections).len(), 1);
}
