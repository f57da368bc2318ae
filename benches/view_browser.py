#!/usr/bin/env python3
"""The page of `tq view` in a real browser: frames, bytes and memory measured, or a picture of it taken. Needs chromium and chromedriver.

    tq view TRACE --no-open                                  prints ADDRESS
    python3 benches/view_browser.py ADDRESS [WIDTH HEIGHT]   measures
    python3 benches/view_browser.py 'ADDRESS#task=63&tab=task&layers=critical-path' 1280 720 docs/pictures/view.png

A hundred frames of zooming in and out around three places, and of panning, are asked for one after the other, three times; for each the time since the
frame before and the time that scripts took are noted. Tiles are those that the page asked for meanwhile.
"""
import base64
import json
import re
import subprocess
import sys
import time
import urllib.request

FRAMES = """
const done = arguments[arguments.length - 1], timeline = document.getElementById('lanes').timeline, { view } = timeline.scene;
const scripts = [], gaps = [], draw = timeline.draw.bind(timeline);
timeline.draw = (now) => { const began = performance.now(); draw(now); scripts.push(performance.now() - began); };
let frames = 0, last = 0;
const step = (now) => {
  if (last) gaps.push(now - last);
  last = now;
  frames += 1;
  const phase = frames % 100;
  if (phase < 40) view.zoom(0.9, view.width * (0.2 + 0.6 * ((frames / 100 | 0) % 3) / 2));
  else if (phase < 60) view.pan(40);
  else view.zoom(1.12, view.width / 2);
  if (frames < 300) requestAnimationFrame(step);
  else setTimeout(() => done({ gaps, scripts, heap: performance.memory?.usedJSHeapSize,
    tiles: performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/tile?')).map((entry) => [entry.duration, entry.transferSize]),
    first: performance.getEntriesByType('paint').map((entry) => [entry.name, entry.startTime]),
    files: performance.getEntriesByType('resource').filter((entry) => /[.](js|css)$/.test(entry.name)).reduce((sum, entry) => sum + entry.decodedBodySize, 0) }), 1000);
};
requestAnimationFrame(step);
"""


def ask(address, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["value"]


def share(values, part):
    values = sorted(values)
    return values[min(int(len(values) * part), len(values) - 1)]


def measure(session):
    found = ask(f"{session}/execute/async", {"script": FRAMES, "args": []})
    gaps, scripts = found["gaps"], found["scripts"]
    print(f"frames {len(gaps)}: median {share(gaps, 0.5):.1f} ms, 95 % within {share(gaps, 0.95):.1f} ms, longest {max(gaps):.1f} ms")
    print(f"scripts a frame: median {share(scripts, 0.5):.1f} ms, 95 % within {share(scripts, 0.95):.1f} ms, longest {max(scripts):.1f} ms")
    times, sizes = zip(*found["tiles"])
    print(f"tiles {len(times)}: median {share(times, 0.5):.0f} ms, longest {max(times):.0f} ms, largest {max(sizes) / 1000:.0f} kB on the wire")
    print(f"heap {found['heap'] / 1e6:.0f} MB, files of the page {found['files'] / 1000:.0f} kB")


def main():
    page, width, height, picture = (sys.argv[1:] + ["1280", "800", None][len(sys.argv) - 2 :])[:4]
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    port = next(match[1] for line in driver.stdout if (match := re.search(r"started successfully on port (\d+)", line)))
    arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
    options = {"goog:chromeOptions": {"args": arguments}, "timeouts": {"script": 120000}}
    base = f"http://127.0.0.1:{port}/session"
    session = f"{base}/{ask(base, {'capabilities': {'alwaysMatch': options}})['sessionId']}"
    try:
        began = time.monotonic()
        ask(f"{session}/url", {"url": page})
        ready = "return document.getElementById('notice').hidden && !!document.getElementById('lanes').timeline?.ranked.length"
        while not ask(f"{session}/execute/sync", {"script": ready, "args": []}):
            time.sleep(0.01)
        if picture is None:
            print(f"first picture {time.monotonic() - began:.2f} s after the address was opened")
            measure(session)
            return
        # Panels are filled by questions of their own.
        time.sleep(3)
        with open(picture, "wb") as file:
            file.write(base64.b64decode(ask(f"{session}/screenshot")))
    finally:
        ask(session, method="DELETE")
        driver.terminate()


if __name__ == "__main__":
    main()
