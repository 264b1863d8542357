"""The page in a real browser."""

import re
import shutil

import numpy as np
import pytest

from serving import served

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright, which is not installed")
WAIT = 30_000  # milliseconds, on a machine that may be busy
pytestmark = pytest.mark.skipif(BROWSER is None, reason="the page is tested in Chromium, which is not installed")


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return [
        {"km": round(a, 2), "city": "Oslo" if b > 0 else "Rome", "target": "late" if a * b > 0 else "on time"}
        for a, b in rng.normal(size=(n, 2)).tolist()
    ]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service")) as (server, client):
        client.put("/models/flights", json={"estimator": "AVMClassifier"}).raise_for_status()
        client.post("/models/flights/learn", json=rows(300, seed=0)).raise_for_status()
        yield server


@pytest.fixture
def page(browser, server):
    """The page of a server; what goes wrong on it is collected."""
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.wrong = []
    page.on("console", lambda message: message.type == "error" and page.wrong.append(message.text))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("request", lambda request: server.address in request.url or page.wrong.append(request.url))
    page.goto(server.address)
    yield page
    page.close()


def events_shown(page):
    playwright.expect(page.locator("#facts dd").first).to_be_visible(timeout=WAIT)
    return int(re.sub(r"\D", "", page.locator("#facts dd").first.evaluate("one => one.firstChild.textContent")))


def test_a_row_is_predicted_by_keyboard_and_named_for_screen_readers(server, page):
    events_shown(page)
    page.get_by_role("button", name="flights").focus()
    field, said = page.get_by_label("A JSON object of columns and values"), page.locator("#said")
    while not field.evaluate("one => one === document.activeElement"):
        page.keyboard.press("Tab")
    field.fill('{"km": 1.0, "city": "Oslo"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    with server.client() as client:
        label = client.post("/models/flights/predict", json={"km": 1.0, "city": "Oslo"}).json()[0]["label"]
        assert client.get("/models/flights").json()["waiting"] == 1  # the client's, not the page's
    playwright.expect(said).to_have_text(label, timeout=WAIT)
    why = page.locator("#why")
    playwright.expect(why).to_contain_text("What brings the score of “on time” from", timeout=WAIT)
    assert sorted(why.locator(".bar > span:first-child").all_text_contents()) == ["city", "km"]
    for bar in why.locator(".bar > span:nth-child(2)").all():
        whole, part = bar.bounding_box(), bar.locator("span").bounding_box()
        is_less = "−" in bar.locator("xpath=following-sibling::span").text_content()
        middle = whole["x"] + whole["width"] / 2.0
        assert (part["x"] + part["width"] if is_less else part["x"]) == pytest.approx(middle, abs=2.0)
    field.fill('{"town": 1.0}')
    page.get_by_role("button", name="Predict").click()
    playwright.expect(said).to_contain_text("no column 'km'", timeout=WAIT)
    playwright.expect(why.locator(".bar")).to_have_count(0)
    for image in page.get_by_role("img").all():
        assert re.fullmatch(r"[A-Z].*: \S.*", image.get_attribute("aria-label"))
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    events_shown(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", ground)[0]) < 100) == (scheme == "dark")


def test_weights_below_zero_stay_in_their_chart(page):
    events_shown(page)
    page.evaluate("""() => {
        state.stop.abort();
        state.history = [0, 1, 2, 3].map((time) => ({ time, experts: { near: 1.2, far: -0.15 * time } }));
        state.facts = { ...state.facts, experts: state.history.at(-1).experts };
        showCharts();
    }""")
    chart = page.get_by_role("img", name="Weights of the experts: near 1.2, far -0.45")
    low = max(box["y"] + box["height"] for box in (path.bounding_box() for path in chart.locator("path").all()))
    assert low <= chart.locator("text", has_text=":").first.bounding_box()["y"]  # above the times
    assert chart.locator("path").first.bounding_box()["y"] >= chart.bounding_box()["y"]


def test_the_page_is_live_and_survives_a_restart(server, page):
    before = events_shown(page)
    first = page.locator("#facts dd").first
    with server.client() as client:
        client.post("/models/flights/learn", json=rows(50, seed=1))
    playwright.expect(first).to_contain_text(str(before + 50), timeout=WAIT)
    playwright.expect(page.locator("#charts svg path").first).to_be_attached(timeout=WAIT)
    assert page.wrong == []
    server.kill()
    playwright.expect(page.locator("#status")).to_contain_text("trying again", timeout=WAIT)
    server.start(port=int(server.address.rpartition(":")[2]))
    playwright.expect(page.locator("#status")).to_have_text("live", timeout=WAIT)
    with server.client() as client:
        client.post("/models/flights/learn", json=rows(50, seed=2))
    playwright.expect(first).to_contain_text(str(before + 100), timeout=WAIT)


def test_losses_of_all_models_are_at_the_top(browser, tmp_path):
    with served(tmp_path / "service") as (server, client):
        for name in ("whole", "hit"):
            client.post(f"/models/{name}/learn", json=rows(5, seed=0)).raise_for_status()
        server.kill()
        (journal,) = (tmp_path / "service/journal").glob("*.log")
        content = bytearray(journal.read_bytes())
        content[-40] ^= 1
        journal.write_bytes(content)
        server.start()
        page = browser.new_page(viewport={"width": 360, "height": 800})
        page.goto(f"{server.address}#whole")
        attention = page.get_by_role("region", name="Needs attention")
        playwright.expect(attention).to_contain_text("hit: 5 events (0 to 4) are lost", timeout=WAIT)
        playwright.expect(attention).to_contain_text("bytes are damaged")
        events_shown(page)
        assert attention.bounding_box()["y"] < page.locator("#facts").bounding_box()["y"]
        page.close()


def test_a_model_is_renamed_and_deleted_and_odd_columns_are_pointed_out(server, page):
    told = [row | {"refund": "yes" if row["target"] == "late" else None} for row in rows(150, seed=3)]
    with server.client() as client:
        client.post("/models/refunds/learn", json=told).raise_for_status()
        client.post("/models/refunds/learn", json=[told[0] | {"km": "far"}]).raise_for_status()
    page.get_by_role("button", name="refunds").click(timeout=WAIT)
    columns = page.locator("#schema")
    playwright.expect(columns).to_contain_text("alone predicts the target: is it known in time?", timeout=WAIT)
    playwright.expect(columns).to_contain_text("1 not understood, taken as missing")
    page.get_by_label("New name").fill("flights")
    page.get_by_role("button", name="Rename").click()
    playwright.expect(page.locator("#changed")).to_contain_text("there is a model called 'flights' already", timeout=WAIT)
    page.get_by_label("New name").fill("returns_of_parcels_that_nobody_had_ordered_in_the_first_place")
    page.get_by_role("button", name="Rename").click()
    playwright.expect(page.get_by_role("button", name="returns")).to_be_visible(timeout=WAIT)
    assert (
        page.evaluate("Math.max(...[...document.querySelectorAll('nav button')].map(one => one.getBoundingClientRect().right))")
        <= 344
    )
    playwright.expect(columns).to_contain_text("refund", timeout=WAIT)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    playwright.expect(page.get_by_role("button", name="returns")).to_have_count(0, timeout=WAIT)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_alarms_are_listed_and_marked(page):
    events_shown(page)
    page.evaluate("""() => {
        state.stop.abort();
        state.history = [0, 1, 2, 3].map((time) => ({ time, events: 100 * time, lately: 0.1 * time, constant_lately: 0.3 }));
        const alarm = { event: 150, said: "changed at event 150: error 2 to 17 %; km moved" };
        state.facts = { ...state.facts, alarms: [{ ...alarm, event: 0 }, alarm], alarm_count: 20 };
        show();
    }""")
    listed = page.get_by_role("region", name="Alarms")
    playwright.expect(listed).to_contain_text("km moved")
    playwright.expect(listed).to_contain_text("20 in all")
    marks = page.locator("#charts svg line.alarm")
    assert marks.count() == 1
    assert "km moved" in marks.first.evaluate("one => one.textContent")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", [1280, 360])
def test_intervals_are_a_band_around_predictions(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    events = [{"km": a, "target": 3.0 * a + 0.2 * b} for a, b in rng.normal(size=(700, 2)).tolist()]
    with served(tmp_path) as (server, client):
        client.put("/models/minutes", json={"estimator": "AVMRegressor"}).raise_for_status()
        for first in range(0, 700, 100):
            client.post("/models/minutes/learn", json=events[first : first + 100]).raise_for_status()
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(server.address)
        section = page.locator("#charts section", has_text="90 % intervals")
        playwright.expect(section.locator("path.band")).to_be_visible(timeout=WAIT)
        assert section.locator("circle").count() == 100
        whole = section.locator("svg").bounding_box()
        for one in (section.locator("path.band"), section.locator("circle").first, section.locator("circle").last):
            box = one.bounding_box()
            assert whole["x"] <= box["x"]
            assert box["x"] + box["width"] <= whole["x"] + whole["width"]
            assert whole["y"] <= box["y"]
            assert box["y"] + box["height"] <= whole["y"] + whole["height"]
        page.close()
