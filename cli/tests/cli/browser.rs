//! The page of `tq view` in a real browser: Chromium, driven by WebDriver. Without both, the tests say so and skip:
//! `apt-get install chromium chromium-driver` brings them.

#![expect(clippy::print_stderr, reason = "whoever runs the tests is told what was skipped")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::http::Method;
use fantoccini::actions::{InputSource, KeyAction, KeyActions, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::Place;
use super::view::View;

/// How long the page may take for anything.
const PATIENCE: Duration = Duration::from_secs(90);

/// A program of the path.
fn program(names: &[&str]) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let at = |name: &&str| std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|file| file.is_file());
    let found = names.iter().find_map(at);
    if found.is_none() {
        eprintln!("skipped: no {} in the path (apt-get install chromium chromium-driver)", names[0]);
    }
    found
}

/// The driver, which ends with the test.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the console of the browser was told.
#[derive(Debug)]
struct Log;

impl WebDriverCompatibleCommand for Log {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({"type": "browser"}).to_string()))
    }
}

/// A browser with the page of a trace.
struct Browser {
    client: Client,
    _driver: Driver,
    /// Who serves the page.
    _view: Option<View>,
}

impl Browser {
    /// Opens the page and waits for its first picture; `None` where there is no browser.
    async fn with(view: View, state: &str) -> Option<Browser> {
        let mut browser = Browser::start().await?;
        browser.client.goto(&format!("http://127.0.0.1:{}/{}/{state}", view.port, view.token)).await.unwrap();
        browser._view = Some(view);
        browser.wait_for_picture().await;
        Some(browser)
    }

    /// Opens a report, and the frame in it that has the time line.
    async fn with_report(page: &Path) -> Option<Browser> {
        let browser = Browser::start().await?;
        browser.client.goto(url::Url::from_file_path(page).unwrap().as_str()).await.unwrap();
        browser.wait_for("return !document.getElementById('time-line').hidden").await;
        browser.client.find(Locator::Css("iframe")).await.unwrap().enter_frame().await.unwrap();
        browser.wait_for_picture().await;
        Some(browser)
    }

    async fn start() -> Option<Browser> {
        let driver = program(&["chromedriver"])?;
        let chromium = program(&["chromium", "google-chrome", "chromium-browser"])?;
        let mut driver =
            Command::new(driver).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let started = "ChromeDriver was started successfully on port ";
        let port = lines.find_map(|line| line.strip_prefix(started).map(|port| port.trim_end_matches('.').to_owned()));
        std::thread::spawn(move || lines.for_each(drop));
        let driver = Driver(driver);
        let mut capabilities = Capabilities::new();
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,800"];
        capabilities.insert("goog:chromeOptions".to_owned(), json!({"binary": chromium, "args": arguments}));
        capabilities.insert("goog:loggingPrefs".to_owned(), json!({"browser": "ALL"}));
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client =
            builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{}", port.unwrap())).await.unwrap();
        Some(Browser { client, _driver: driver, _view: None })
    }

    async fn wait_for_picture(&self) {
        self.wait_for(
            "return document.getElementById('notice').hidden && !!document.getElementById('lanes')?.timeline",
        )
        .await;
    }

    async fn run(&self, script: &str) -> Value {
        self.client.execute(script, vec![]).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    async fn wait_for(&self, script: &str) {
        let began = Instant::now();
        while self.run(script).await != json!(true) {
            let page = if began.elapsed() < PATIENCE { String::new() } else { self.text("body").await };
            assert!(began.elapsed() < PATIENCE, "`{script}` does not become true: {page}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn text(&self, selector: &str) -> String {
        self.client
            .find(Locator::Css(selector))
            .await
            .unwrap_or_else(|error| panic!("{selector}: {error}"))
            .text()
            .await
            .unwrap()
    }

    /// Waits until an element has a text.
    async fn wait_for_text(&self, selector: &str, text: &str) {
        let found = format!(
            "return (document.querySelector({}) || {{}}).textContent?.includes({}) === true",
            json!(selector),
            json!(text)
        );
        self.wait_for(&found).await;
    }

    async fn press(&self, keys: &str) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for value in keys.chars() {
            actions = actions.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        }
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Where the time line draws a tick of a lane, in pixels of the window.
    async fn place(&self, location: &str, tick: &str) -> (i64, i64) {
        let script = format!(
            "const canvas = document.getElementById('lanes'), {{ scene, layout }} = canvas.timeline, box = canvas.getBoundingClientRect();
             const row = layout.rows.find(({{ node }}) => node.lane?.location === {});
             return [Math.round(box.left + scene.view.x({tick}n)), Math.round(box.top + row.top + 12)]",
            json!(location)
        );
        let place = self.run(&script).await;
        (place[0].as_i64().unwrap(), place[1].as_i64().unwrap())
    }

    async fn click(&self, (x, y): (i64, i64)) {
        let actions = MouseActions::new("mouse".to_owned())
            .then(PointerAction::MoveTo { duration: None, x: x as f64, y: y as f64 })
            .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT })
            .then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        self.client.perform_actions(actions).await.unwrap();
    }

    async fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        let moved = |(x, y): (i64, i64), duration| PointerAction::MoveTo { duration, x: x as f64, y: y as f64 };
        let actions = MouseActions::new("mouse".to_owned())
            .then(moved(from, None))
            .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT })
            .then(moved(to, Some(Duration::from_millis(100))))
            .then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
        self.client.perform_actions(actions).await.unwrap();
    }

    /// The console heard of no error.
    async fn close(self) {
        let log = self.client.issue_cmd(Log).await.unwrap();
        let errors: Vec<&Value> = log.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE").collect();
        assert!(errors.is_empty(), "{errors:?}");
        self.client.close().await.unwrap();
    }
}

/// A file of what npm installs for these tests: `npm ci` in `cli/tests/page`.
fn of_npm(path: &str) -> Option<PathBuf> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/page/node_modules").join(path);
    if !file.is_file() {
        eprintln!("skipped: no {path} (`npm ci` in cli/tests/page)");
    }
    Some(file).filter(|file| file.is_file())
}

#[test]
fn types_in_the_comments_of_the_page_hold() {
    let (Some(node), Some(compiler)) = (program(&["node"]), of_npm("typescript/bin/tsc")) else { return };
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/page/tsconfig.json");
    let checked = Command::new(node).arg(compiler).arg("-p").arg(project).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Contrast, roles and names of what can be reached, with each panel open.
#[test]
fn everybody_can_use_the_page() {
    in_browser(async {
        let Some(axe) = of_npm("axe-core/axe.min.js") else { return };
        let axe = std::fs::read_to_string(axe).unwrap();
        let states = [
            "",
            "#task=0&tab=task",
            "#range=10000..70000&tab=range",
            "#tab=sql&sql=SELECT%20*%20FROM%20tasks",
            "#theme=dark",
        ];
        for state in states {
            let Some(page) = Browser::with(View::of(Place::new(), &["run.json"]), state).await else { return };
            tokio::time::sleep(Duration::from_millis(500)).await;
            page.run(&axe).await;
            let script = "const done = arguments[arguments.length - 1]; axe.run().then((found) => done(found.violations), (error) => done(String(error)))";
            let violations = page.client.execute_async(script, vec![]).await.unwrap();
            assert_eq!(violations, json!([]), "{state}");
            page.close().await;
        }
    });
}

fn in_browser(test: impl Future<Output = ()>) {
    Runtime::new().unwrap().block_on(test);
}

#[test]
fn tasks_are_drawn_where_they_ran_and_lead_to_each_other() {
    in_browser(async {
        let Some(page) = Browser::with(View::of(Place::with_links(), &["run.json"]), "").await else { return };
        assert_eq!(page.text("#title").await, "run");
        assert!(page.text("#facts").await.starts_with("3 tasks"));
        // c runs on worker 0 from 50 to 60 µs, after a.
        page.click(page.place("E0/W0", "55000").await).await;
        page.wait_for_text("#panel-task", "50.000 µs").await;
        page.wait_for_text("#panel-task", "Released by").await;
        page.press("[").await;
        page.wait_for_text("#told", "a").await;
        page.wait_for("return location.hash.includes('task=0')").await;
        // A pixel of b has a colour, one before it is paper.
        let (x, y) = page.place("E0/W1", "50000").await;
        let (before, _) = page.place("E0/W1", "10000").await;
        let pixel = |x: i64| {
            format!(
                "const canvas = document.getElementById('lanes'), box = canvas.getBoundingClientRect();
                 return [...canvas.getContext('2d').getImageData({x} - box.left, {y} - box.top + 4, 1, 1).data]"
            )
        };
        assert_ne!(page.run(&pixel(x)).await, page.run(&pixel(before)).await);
        page.close().await;
    });
}

#[test]
fn a_range_is_summed_up_by_saved_queries() {
    in_browser(async {
        let Some(page) = Browser::with(View::of(Place::new(), &["run.json"]), "").await else { return };
        page.drag(page.place("E0/W0", "45000").await, page.place("E0/W0", "75000").await).await;
        page.wait_for("return location.hash.includes('range=')").await;
        page.wait_for_text("#panel-range", "total_self_time").await;
        assert!(!page.text("#panel-range").await.contains("NaN"));
        page.close().await;
    });
}

#[test]
fn parameters_of_a_saved_query_have_fields() {
    in_browser(async {
        let view = View::of(Place::new(), &["run.json"]);
        let Some(page) = Browser::with(view, "#tab=range&query=longest-tasks").await else { return };
        page.wait_for_text("#panel-range", "50.0 µs").await;
        let limit = page.client.find(Locator::Css("#panel-range input[name=limit]")).await.unwrap();
        assert_eq!(limit.attr("placeholder").await.unwrap().as_deref(), Some("20"));
        limit.send_keys("1\u{e007}").await.unwrap();
        page.wait_for("return location.hash.includes('params=limit%3D1')").await;
        page.wait_for("return document.querySelectorAll('#panel-range tbody tr').length === 1").await;
        // Another query has parameters of its own.
        page.run("[...document.querySelectorAll('#panel-range button')].find((one) => one.textContent === 'busy-locations').click()").await;
        page.wait_for("return !location.hash.includes('params=')").await;
        page.client.close().await.unwrap();
    });
}

#[test]
fn sql_beside_the_time_line() {
    in_browser(async {
        let Some(page) = Browser::with(View::of(Place::new(), &["run.json"]), "").await else { return };
        page.client.find(Locator::Id("show-sql")).await.unwrap().click().await.unwrap();
        let editor = page.client.find(Locator::Css("#panel-sql textarea")).await.unwrap();
        editor.send_keys("SELECT name, start, finish, location FROM tasks ORDER BY start").await.unwrap();
        editor.send_keys("\u{e009}\u{e007}").await.unwrap();
        page.wait_for_text(".sql-answer", "E0/W1").await;
        editor.clear().await.unwrap();
        editor.send_keys("SELECT nothing FROM tasks\u{e009}\u{e007}").await.unwrap();
        page.wait_for_text("#panel-sql", "nothing").await;
        page.wait_for_text("#panel-sql [role=status]", "Line 1, column 8").await;
        // The refused question is no error of the page, but the console hears of its status.
        page.client.close().await.unwrap();
    });
}

#[test]
fn names_are_found_and_keys_are_listed() {
    in_browser(async {
        let Some(page) = Browser::with(View::of(Place::new(), &["run.json"]), "").await else { return };
        page.press("/").await;
        page.press("^[ac]$\u{e007}").await;
        page.wait_for_text("#hits", "2 hits, 50.0 µs").await;
        page.press("\u{e00c}").await;
        page.run("document.getElementById('lanes').focus()").await;
        page.press("?").await;
        page.wait_for("return document.getElementById('help-dialog').open").await;
        page.close().await;
    });
}

/// Names that would be markup, addresses or commands elsewhere are text here, and times near the end of what is possible are exact.
#[test]
fn hostile_names_and_late_times_are_only_shown() {
    in_browser(async {
        let place = Place::new();
        let names = [
            "<script>document.title='x'</script>".to_owned(),
            "\"><img src=x onerror=\"document.title='x'\">".to_owned(),
            "\u{202e}gnihtemos\u{200f}".to_owned(),
            "n".repeat(10_000),
            "javascript:alert(1)".to_owned(),
        ];
        let rows = names.iter().enumerate().map(|(row, name)| {
            json!({"name": name, "location": format!("{name}{row}"), "start": 4_000_000_000_000_000_000_i64 + row as i64 * 10, "finish": 4_000_000_000_000_000_000_i64 + row as i64 * 10 + 7})
        });
        place.write("hostile.ndjson", &rows.map(|row| format!("{row}\n")).collect::<String>());
        let Some(page) = Browser::with(
            View::of(
                place,
                &[
                    "hostile.ndjson",
                    "--option",
                    "table.start=start:ps",
                    "--option",
                    "table.finish=finish:ps",
                    "--option",
                    "table.origin=0",
                ],
            ),
            "",
        )
        .await
        else {
            return;
        };
        page.click(page.place(&format!("{}1", names[1]), "4000000000000000013").await).await;
        page.wait_for_text("#panel-task", "onerror").await;
        assert_eq!(page.run("return document.querySelectorAll('img, script:not([src])').length").await, json!(0));
        assert!(!page.client.title().await.unwrap().contains('x') || page.client.title().await.unwrap().contains("tq"));
        page.wait_for("return location.hash.includes('task=1')").await;
        page.close().await;
    });
}

/// The time line of a report is the page without a server, from a file.
#[test]
fn a_report_has_the_time_line_inside() {
    in_browser(async {
        let place = Place::with_links();
        let written = place.tq("report run.json --html -o page.html");
        assert_eq!(written.status, Some(0), "{}", written.stderr);
        let page = place.0.path().join("page.html");
        let Some(page) = Browser::with_report(&page).await else { return };
        // What needs a server is not offered, what is enclosed is.
        let seen = "return [...document.querySelectorAll('button')].filter((one) => one.checkVisibility()).map((one) => one.textContent)";
        let seen = page.run(seen).await.to_string();
        assert!(seen.contains("Critical path") && !seen.contains("SQL"), "{seen}");
        page.run("document.getElementById('search').focus()").await;
        page.press("^[ac]$\u{e007}").await;
        page.wait_for_text("#hits", "2 hits").await;
        let place = "const { timeline } = document.getElementById('lanes'), lane = timeline.scene.trace.lanes.findIndex((lane) => lane.location.endsWith('W1'));
            return timeline.shownTasks(lane, 0).map((hit) => Number(hit.start)).join()";
        assert_eq!(page.run(place).await, json!("20000"));
        page.close().await;
    });
}
