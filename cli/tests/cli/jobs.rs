//! Jobs of CI: the steps that the documentation shows, and the scripts of the action for GitHub.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Place;

/// The steps of the job of `docs/check-in-ci.md` that run `tq`, as a runner would run them.
#[test]
fn the_job_of_the_documentation_gates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/check-in-ci.md")).unwrap();
    for name in ["occupancy", "path-composition"] {
        let check = std::fs::read_to_string(root.join(format!("docs/checks/{name}.sql"))).unwrap();
        assert!(page.contains(&check), "docs/checks/{name}.sql is the one that the page shows");
    }
    let steps = steps(&page);
    assert_eq!(steps.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["Gate", "Report"]);

    let project = Project::new(root);
    let same = project.run(&steps[0].1);
    assert_eq!(same.0, Some(0), "{}", same.1);
    assert!(project.summary().contains("5 checks: 5 held"), "{}", project.summary());

    project.slow_down_encoding();
    let slower = project.run(&steps[0].1);
    assert_eq!(slower.0, Some(1), "{}", slower.1);
    assert!(slower.1.contains("::error file=.tq/checks/path-composition.sql,line=4,"), "{}", slower.1);
    assert!(project.summary().contains("encode: work"), "{}", project.summary());
    assert!(project.file("check.xml").contains("<failure"));
    assert!(project.file("offends.svg").starts_with("<svg"));

    let report = project.run(&steps[1].1);
    assert_eq!(report.0, Some(0), "{}", report.1);
    assert!(project.summary().contains("## What changed"), "{}", project.summary());
    assert!(!project.summary().contains("base64"));
    assert!(project.file("report.html").starts_with("<!DOCTYPE html>"));

    std::fs::write(project.0.0.path().join(".tq/checks/occupancy.sql"), "-- expct no rows\nSELECT 1").unwrap();
    assert_eq!(project.run(&steps[0].1).0, Some(2));
}

/// The action of `.github/actions/check`, on the same project.
#[test]
fn the_action_checks_what_its_inputs_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let project = Project::new(root);
    let script = root.join(".github/actions/check/check.sh").display().to_string();
    let check = |traces: &str, query: &str, tolerance: &str| {
        let inputs = [
            ("TRACES", traces),
            ("BASELINE", "traces/base/*/render_log.csv"),
            ("QUERY", query),
            ("TOLERANCE", tolerance),
            ("REPORT", "page.html"),
        ];
        let inputs: String = inputs.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        project.run(&format!("{inputs}bash '{script}'"))
    };
    let same = check("traces/new/*/render_log.csv", ".tq/checks", "");
    assert_eq!(same.0, Some(0), "{}", same.1);
    assert!(project.summary().contains("5 checks: 5 held"), "{}", project.summary());
    assert!(project.file("page.html").starts_with("<!DOCTYPE html>"));

    project.slow_down_encoding();
    let slower = check("traces/new/*/render_log.csv", "", "1%");
    assert_eq!(slower.0, Some(1), "{}", slower.1);
    assert!(project.file("page.html").contains("What changed"));
    assert!(slower.1.contains("::error"), "{}", slower.1);
    // A name with a blank is one name, whether it is written out or found.
    std::fs::rename(project.0.0.path().join("traces/new"), project.0.0.path().join("traces/a new one")).unwrap();
    let blank = check("traces/a new one/1/render_log.csv\ntraces/a*/2/render_log.csv", "", "1%");
    assert_eq!(blank.0, Some(1), "{}", blank.1);
    let missing = check("traces/none-*.csv", "", "");
    assert_eq!(missing.0, Some(2), "{}", missing.1);
    assert!(missing.1.contains("traces/none-*.csv"), "{}", missing.1);
    assert_eq!(check("", "", "").0, Some(2));
}

/// The program of a release is taken only if it is the one that was packed.
#[test]
fn the_action_installs_a_release() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let project = Project::new(root);
    let script = root.join(".github/actions/check/install.sh").display().to_string();
    let install = "export VERSION=0.0.1 RUNNER_OS=Linux RUNNER_ARCH=X64 RUNNER_TEMP=\"$PWD/temp\" GITHUB_PATH=\"$PWD/path\" \
         TQ_RELEASES=\"file://$PWD/releases\"\n\
         name=tq-0.0.1-x86_64-unknown-linux-gnu; mkdir -p temp $name releases/v0.0.1; echo packed > $name/tq\n\
         tar -czf releases/v0.0.1/$name.tar.gz $name\n\
         (cd releases/v0.0.1 && sha256sum $name.tar.gz > $name.tar.gz.sha256)\n";
    let good = project.run(&format!("{install}bash '{script}'; cat \"$(cat path)/tq\""));
    assert_eq!(good.0, Some(0), "{}", good.1);
    assert!(good.1.contains("packed"), "{}", good.1);
    let other = project.run(&format!("{install}echo x >> releases/v0.0.1/$name.tar.gz; rm path; bash '{script}'"));
    assert_ne!(other.0, Some(0), "{}", other.1);
    assert!(!project.0.0.path().join("path").exists());
    let nowhere = project.run(&format!("{install}export RUNNER_OS=Plan9; bash '{script}'"));
    assert_eq!(nowhere.0, Some(2), "{}", nowhere.1);
}

/// Name and script of the steps of the page's YAML that run `tq`.
fn steps(page: &str) -> Vec<(String, String)> {
    let yaml = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let mut steps = Vec::new();
    for step in yaml.split("\n      - ").skip(1) {
        let Some(name) = step.lines().next().and_then(|line| line.strip_prefix("name: ")) else { continue };
        let Some((_, script)) = step.split_once("run: |\n") else { continue };
        let lines: Vec<&str> = script.lines().map(str::trim_start).collect();
        if lines.iter().any(|line| line.starts_with("tq ")) {
            steps.push((name.to_owned(), lines.join("\n")));
        }
    }
    steps
}

/// A checkout as the job finds it: checks, and five recordings a side.
struct Project(Place);

impl Project {
    fn new(root: &Path) -> Project {
        let project = Project(Place::new());
        let to = |name: &str| project.0.0.path().join(name);
        std::fs::create_dir_all(to(".tq/checks")).unwrap();
        for name in ["occupancy.sql", "path-composition.sql"] {
            std::fs::copy(root.join("docs/checks").join(name), to(".tq/checks").join(name)).unwrap();
        }
        for folder in project.recordings() {
            std::fs::create_dir_all(&folder).unwrap();
            for name in ["render_log.csv", "render_log.csv.tq.toml", "render_deps.csv", "render_memory.csv"] {
                std::fs::copy(root.join("fixtures/table").join(name), folder.join(name)).unwrap();
            }
        }
        project
    }

    fn recordings(&self) -> Vec<PathBuf> {
        let folder = |side: &str, number: usize| self.0.0.path().join(format!("traces/{side}/{number}"));
        ["base", "new"].into_iter().flat_map(|side| (1..=5).map(move |number| folder(side, number))).collect()
    }

    /// Encoding takes twice as long in the recordings of the pull request: what follows on a worker moves.
    fn slow_down_encoding(&self) {
        for folder in self.recordings().iter().skip(5) {
            let file = folder.join("render_log.csv");
            let mut text = String::new();
            for line in std::fs::read_to_string(&file).unwrap().lines() {
                let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
                if let (Ok(begin), Ok(end)) = (cells[0].parse::<f64>(), cells[1].parse::<f64>()) {
                    let end = if cells[3] == "encode" { end + (end - begin) } else { end };
                    cells[1] = format!("{end:.6}");
                }
                writeln!(text, "{}", cells.join(",")).unwrap();
            }
            std::fs::write(&file, text).unwrap();
        }
    }

    /// Status, and stdout with stderr.
    fn run(&self, script: &str) -> (Option<i32>, String) {
        let tq = Path::new(env!("CARGO_BIN_EXE_tq")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([tq.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let output = Command::new("bash")
            .args(["-e", "-c", script])
            .current_dir(self.0.0.path())
            .env("PATH", path)
            .env("XDG_CONFIG_HOME", self.0.0.path().join("config"))
            .env("GITHUB_STEP_SUMMARY", self.0.0.path().join("summary.md"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    fn summary(&self) -> String {
        self.file("summary.md")
    }

    fn file(&self, name: &str) -> String {
        self.0.read(name)
    }
}
