"""The dashboard in a real browser with the network cut: every page, both themes, desk and phone, and what a reader does there."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser import View, opened
from visitor import running

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.facts import digits, load_facts
from inside_deepinfer.figures.theme import PALETTE
from inside_deepinfer.scenario import make_scenario, parameters

pytestmark = pytest.mark.browser
LIVE = "() => document.documentElement.dataset.line === 'open' && Number(document.documentElement.dataset.complete) > 0"
SCENARIO_PAGES = [slug for slug, page in all_pages().items() if page.controls]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    book = tmp_path_factory.mktemp("book")
    (book / "index.html").write_text("<!doctype html><html lang=en><title>Front</title><main><h1>Front page</h1></main>", encoding="utf-8")
    (book / "frame.html").write_text(
        "<!doctype html><html lang=en><title>Frame</title><main><h1>Chapter</h1>"
        "<iframe title=live width=700 height=900 src='/explore/fleet?h=0.9'></iframe></main>", encoding="utf-8")
    with running(book) as (address, _):
        yield address


def ready(view: View, plots: int | None = None) -> None:
    """Wait until the websocket stands and the figures are drawn."""
    view.page.wait_for_function(LIVE, timeout=30_000)
    if plots:
        view.page.wait_for_function(f"() => document.querySelectorAll('.plot .main-svg:first-child').length >= {plots}", timeout=30_000)


def settle(view: View, action: Any) -> None:
    """Do something and wait until the figures have been drawn again."""
    before = view.page.evaluate("document.documentElement.dataset.complete")
    action()
    view.page.wait_for_function(f"() => document.documentElement.dataset.complete !== '{before}'", timeout=30_000)
    view.page.wait_for_timeout(200)


def enter(view: View, name: str, text: str) -> None:
    view.page.fill(f"#c-{name}-entry", text)
    view.page.keyboard.press("Enter")


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("slug", all_pages())
def test_every_page_is_clean_in_both_themes_with_all_its_figures(chrome: Any, home: str, slug: str, width: int) -> None:
    page = all_pages()[slug]
    with opened(chrome, f"{home}/explore/{slug}", width=width) as view:
        ready(view, len(page.figures))
        for theme in ("light", "dark"):
            if view.theme() != theme:
                settle(view, lambda: view.page.click("header > button"))
            assert view.theme() == theme
            view.page.wait_for_function("() => !document.querySelector('main').classList.contains('stale')")
            plots = view.plots()
            assert len(plots) == len(page.figures)
            for plot in plots:
                assert plot["traces"] and plot["drawn"] >= plot["traces"], plot
                assert plot["box"]["right"] <= width and plot["ink"] == PALETTE["ink"][theme == "dark"]
                assert plot["paper"] == "rgba(0,0,0,0)"
            view.check(axe=(width, theme) in ((1280, "light"), (375, "dark")))  # each width and each theme once: axe is slow
        assert view.page.title() == f"{page.title} · Inside DeepInfer"


@pytest.mark.parametrize("view_name", ["stakeholder", "embed"])
@pytest.mark.parametrize("width", [1280, 375])
def test_large_view_and_frame_view_are_clean(chrome: Any, home: str, width: int, view_name: str) -> None:
    with opened(chrome, f"{home}/explore/fleet?h=0.9&view={view_name}", width=width, theme="dark") as view:
        ready(view, 1)
        view.check()
        page = view.page
        if view_name == "stakeholder":
            assert page.locator("#side").is_hidden() and page.locator("figure:visible").count() == 1
            assert page.locator(".card:visible").count() == 0 and page.locator("text=Compare").is_hidden()
            size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.finding')).fontSize)")
            assert size >= (28 if width == 1280 else 20)
            settle(view, lambda: page.click("text=Leave large view"))
            assert page.locator(".card:visible").count() == len(all_pages()["fleet"].cards)
            page.wait_for_timeout(300)
            assert page.url.endswith("/explore/fleet?h=0.9")
        else:
            assert page.locator("header").is_hidden() and page.locator("#c-hit_rate").is_visible()


HOSTILE = (
    "h=<script>document.title='hit'</script>&T=\"><img src=x onerror=\"document.title='hit'\">"
    "&<b onmouseover=document.title='hit'>=1&preset=<svg onload=document.title='hit'>&h=0.5&h=0.6&L=NaN&pd=inf&cur=EUR&io=%00"
    "&🐋=🐋&view=<i>&theme=<style>*{display:none}</style>&a=" + quote("h=<img src=x onerror=document.title='hit'>"))


@pytest.mark.parametrize("slug", all_pages())
def test_a_hostile_link_is_shown_as_text_and_does_nothing(chrome: Any, home: str, slug: str) -> None:
    page = all_pages()[slug]
    own = "&".join(f"{field.key}={quote('<img src=x onerror=1>')}" for field in page.fields)
    with opened(chrome, f"{home}/explore/{slug}?{quote(HOSTILE, safe='=&%')}&{own}") as view:
        ready(view, len(page.figures))
        view.page.wait_for_function("() => document.querySelector('.notices')?.innerText.includes('In scenario A')")
        said = view.page.inner_text(".notices")
        assert "<script>document.title='hit'</script>" in said and "<svg onload" in said and "In scenario A" in said
        assert view.page.title() == f"{page.title} · Inside DeepInfer"
        assert view.page.locator(".notices img, .notices script, .notices svg, main img").count() == 0
        view.check()
    with opened(chrome, f"{home}/explore/{slug}?x={'a' * 6000}", width=375) as view:
        ready(view, len(page.figures))
        assert "too long" in view.page.inner_text(".notices")
        view.check(axe=False)


def test_moving_a_slider_redraws_the_figure_and_writes_the_address(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/cache-prices") as view:
        ready(view, 1)
        page = view.page
        page.focus("#c-hit_rate")
        settle(view, lambda: page.keyboard.press("Home"))
        page.wait_for_timeout(400)
        assert page.url.endswith("?h=0")
        settle(view, lambda: page.keyboard.press("ArrowRight"))
        assert page.input_value("#c-hit_rate-entry") == str(parameters()["hit_rate"].step)
        settle(view, lambda: enter(view, "hit_rate", "0.8"))
        facts = load_facts()
        price = 0.8 * facts.number("price.v41.cny.hit") + 0.2 * facts.number("price.v41.cny.miss")
        assert page.inner_text("[data-card=effective_input_price] .big") == digits(price)
        assert digits(price) in page.inner_text(".finding")
        page.wait_for_timeout(400)
        assert page.url.endswith("?h=0.8")
        slider = page.locator("#c-hit_rate")
        assert slider.get_attribute("aria-valuetext") == "0.8" and page.get_by_label("cache hit rate", exact=True).count() == 1
        assert all("h=0.8" in link for link in page.eval_on_selector_all("nav a", "links => links.map(link => link.href)"))
        assert page.get_attribute(".chapter", "href") == "../notebooks/cached-token.html?h=0.8"
        page.reload()
        ready(view, 1)
        assert page.input_value("#c-hit_rate-entry") == "0.8"
        settle(view, lambda: page.click("text=Back to the preset"))
        page.wait_for_timeout(400)
        assert page.url.endswith("/explore/cache-prices")
        view.check()


@pytest.mark.parametrize("slug", SCENARIO_PAGES)
def test_the_page_shows_the_numbers_of_the_catalogue(chrome: Any, home: str, slug: str) -> None:
    with opened(chrome, f"{home}/explore/{slug}?h=0.9&pd=2") as view:
        ready(view)
        found = catalogue.evaluate([card.name for card in all_pages()[slug].cards], make_scenario("published", {"h": 0.9, "pd": 2}))
        for card in all_pages()[slug].cards:
            value = found[card.name].value
            if card.show == "percent":
                value = 100 * value
            text = view.page.inner_text(f"[data-card='{card.name}'] .big")
            number, _, scale = text.partition(" ")
            if isinstance(value, (int, float)) and number == digits(value) and not scale:
                continue
            # shown with a scale: millions, GiB, ms; the digits must still be those of the number
            assert not isinstance(value, (int, float)) or number.replace(",", "").replace(".", "").lstrip("-0"), text


def test_typed_values_out_of_range_are_refused_with_a_notice(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/fleet?h=0.7") as view:
        ready(view)
        for typed in ("98", "-1", "0,7", "abc", "1e400", "NaN", ""):
            settle(view, lambda typed=typed: enter(view, "hit_rate", typed))
            notice = view.page.inner_text(".notices")
            assert "Cache hit rate" in notice and "0 to 0.995" in notice and "kept: 0.7" in notice, typed
            assert view.page.input_value("#c-hit_rate-entry") == "0.7"
        settle(view, lambda: enter(view, "hit_rate", "0.75"))
        assert not view.page.inner_text(".notices").strip()
        view.check()


def test_every_control_has_a_name_unit_bounds_and_source(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/revenue") as view:
        ready(view)
        view.page.evaluate("document.querySelectorAll('.group').forEach(group => group.open = true)")
        for name in all_pages()["revenue"].controls:
            parameter = parameters()[name]
            assert view.page.get_by_label(str(parameter.label), exact=True).count() == 1
            button = view.page.get_by_role("button", name=f"About {parameter.label}", exact=True)
            assert "Allowed: " in (button.get_attribute("title") or "")
            button.click()
            about = view.page.locator(f"#c-{name}-about")
            source = load_facts().sources[load_facts().quantity(parameter.fact).sources[0]]
            assert about.is_visible() and source.title in about.inner_text()
        view.check()


def test_the_chain_of_a_number_opens_by_keyboard_and_gives_the_focus_back(chrome: Any, home: str) -> None:
    for width in (1280, 375):
        with opened(chrome, f"{home}/explore/fleet", width=width) as view:
            ready(view)
            view.page.focus("[data-card=cluster_gpus_from_throughput]")
            view.page.keyboard.press("Enter")
            view.page.wait_for_selector(".chain")
            text = view.page.inner_text("dialog")
            assert "prefill_gpus_from_throughput * (1 + 1 / pd_ratio)" in text and "* (1 + 1 / 1) = " in text and "Article 000" in text
            view.page.evaluate("document.querySelectorAll('dialog details').forEach(part => part.open = true)")
            view.check()
            view.page.keyboard.press("Escape")
            assert view.page.evaluate("document.activeElement.dataset.card") == "cluster_gpus_from_throughput"
            assert view.page.locator("dialog").is_hidden()


def test_a_comparison_stays_in_the_address_and_shows_the_differences(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/revenue?h=0.9") as view:
        ready(view, 3)
        settle(view, lambda: view.page.click("text=Compare"))
        settle(view, lambda: enter(view, "pd_ratio", "2"))
        view.page.wait_for_timeout(400)
        assert view.page.url.endswith("?h=0.9&pd=2&a=h%3D0.9")
        assert "Prefill GPUs per decode GPU\t1\t2" in view.page.inner_text(".comparison table")
        assert "B − A" in view.page.inner_text("[data-card=revenue_per_cluster_gpu_hour]")
        assert view.page.locator(".plot:visible").count() == 6
        view.check()
        settle(view, lambda: view.page.click("text=Swap A and B"))
        view.page.wait_for_timeout(400)
        assert view.page.url.endswith("?h=0.9&a=h%3D0.9%26pd%3D2")
        settle(view, lambda: view.page.click("text=Stop comparing"))
        view.page.wait_for_timeout(400)
        assert view.page.url.endswith("?h=0.9")
    with opened(chrome, f"{home}/explore/fleet?h=0.9&a=h%3D0.8", width=375, theme="dark") as view:
        ready(view, 2)
        view.check()


def test_downloads_hold_the_numbers_and_the_picture(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/fleet?h=0.9", theme="dark") as view:
        ready(view, 2)
        with view.page.expect_download() as waiting:
            view.page.click("text=CSV >> nth=0")
        rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
        gpus = catalogue.value("cluster_gpus_from_throughput", make_scenario("published", {"h": 0.9}))
        assert waiting.value.suggested_filename == "fleet-three-routes.csv"
        assert float(rows[1][1]) == pytest.approx(gpus, rel=1e-5)
        with view.page.expect_download() as waiting:
            view.page.click("text=PNG >> nth=1")
        picture = Path(waiting.value.path()).read_bytes()
        assert waiting.value.suggested_filename == "fleet-reconcile.png" and picture.startswith(b"\x89PNG") and len(picture) > 20_000
        view.page.click("summary:has-text('Numbers behind it') >> nth=0")
        lines = view.page.locator("figure >> nth=0 >> tbody tr")
        lines.nth(len(rows) - 2).wait_for()  # the table is asked for when it opens
        assert lines.count() == len(rows) - 1
        view.check()


@pytest.mark.parametrize("query", ["c=ascend-950pr", "m=deepseek-v3&ctx=200000", "ep=2&c=h200", "ep=7"])
def test_a_reason_fits_on_a_phone(chrome: Any, home: str, query: str) -> None:
    """A long word in a reason (a path, a list of divisors) must not make the page wider than the screen."""
    with opened(chrome, f"{home}/explore/hbm?{query}", width=375) as view:
        view.page.wait_for_selector(".impossible")
        view.check(axe=False)
        assert "Not possible, because" in view.page.locator(".finding").inner_text()


def test_on_a_phone_the_inputs_start_closed_and_open_as_a_sheet(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/fleet", width=375) as view:
        ready(view)
        side, button = view.page.locator("#side"), view.page.locator(".side-toggle")
        assert side.is_hidden() and button.get_attribute("aria-expanded") == "false"
        assert view.page.evaluate("document.documentElement.clientWidth") == 375
        button.click()
        assert side.is_visible() and button.get_attribute("aria-expanded") == "true"
        view.check()
        settle(view, lambda: enter(view, "hit_rate", "0.9"))
        assert view.page.locator(".finding").is_visible()
        view.page.keyboard.press("Escape")
        assert side.is_hidden() and view.page.evaluate("document.activeElement.className") == "side-toggle"


def test_the_copied_link_is_the_scenario(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/fleet?h=0.9&theme=dark", permissions=["clipboard-read", "clipboard-write"]) as view:
        ready(view)
        assert view.theme() == "dark"
        settle(view, lambda: enter(view, "pd_ratio", "2"))
        view.page.click("text=Copy link")
        view.page.wait_for_selector("text=Link copied")
        assert view.page.evaluate("navigator.clipboard.readText()") == f"{home}/explore/fleet?h=0.9&pd=2"


def test_all_of_a_page_can_be_reached_with_the_tab_key(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/cache-prices") as view:
        ready(view)
        seen = []
        for _ in range(60):
            view.page.keyboard.press("Tab")
            seen.append(view.page.evaluate(
                "() => { const at = document.activeElement; return at.id || at.dataset.card || at.textContent.slice(0, 30); }"))
        for part in ("Skip to the result", "Cache prices", "preset", "c-hit_rate", "c-hit_rate-entry", "Currency and hours",
                     "effective_input_price", "Numbers behind it", "CSV", "PNG", "Compare", "Copy link", "Large view", "Dark"):
            assert part in seen, (part, seen)


def test_the_audit_table_can_be_searched_filtered_sorted_and_opened(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/explore/audit") as view:
        ready(view, 1)
        page = view.page
        total = len(load_facts().claims)
        assert page.inner_text(".count") == f"{total} rows"
        page.select_option("#audit-1", "conflict")
        conflicts = page.locator("section.table tbody tr").count()
        assert 0 < conflicts < total and page.inner_text(".count") == f"{conflicts} of {total} rows"
        page.reload()
        ready(view, 1)
        assert "#audit?verdict=conflict" in page.url and page.inner_text(".count") == f"{conflicts} of {total} rows"
        page.select_option("#audit-1", "")
        page.fill("#audit-search", "per_gpu_hour")
        assert page.locator("section.table tbody tr").count() >= 1
        page.click("section.table button.sort >> nth=0")
        assert page.get_attribute("section.table th >> nth=0", "aria-sort") == "ascending"
        page.click("text=fleet.revenue_per_gpu_hour")
        page.wait_for_selector("dialog .prose")
        assert "Verdict: " in page.inner_text("dialog")
        view.check()


def test_a_frame_in_a_chapter_shows_inputs_and_figures_without_the_bar(chrome: Any, home: str) -> None:
    with opened(chrome, f"{home}/frame.html") as view:
        frame = view.page.frames[1]
        frame.wait_for_function(LIVE, timeout=30_000)
        assert frame.locator("header").is_hidden() and frame.locator("#c-hit_rate").is_visible()
        assert frame.locator(".js-plotly-plot .main-svg").first.is_visible()
        frame.evaluate("document.documentElement.dataset.theme = 'dark'")
        frame.wait_for_function(f"() => document.querySelector('.js-plotly-plot')._fullLayout.font.color === '{PALETTE['ink'][1]}'")
        assert not view.console and not view.foreign


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/explore", "/no/such/page/" + "x" * 300])
def test_index_and_missing_page_are_clean(chrome: Any, home: str, path: str, theme: str) -> None:
    with opened(chrome, home + path, width=375, theme=theme) as view:
        assert view.page.locator("h1").count() == 1 and not view.foreign and not view.too_wide() and not view.axe()


def test_a_lost_server_is_said_and_the_page_goes_on_when_it_is_back(chrome: Any) -> None:
    with running() as (address, child), opened(chrome, f"{address}/explore/fleet") as view:
        ready(view)
        settle(view, lambda: enter(view, "hit_rate", "0.9"))
        child.terminate()
        child.wait(15)
        view.page.wait_for_selector("p.line:visible", timeout=30_000)
        assert "does not answer" in view.page.inner_text("p.line")
        with running(port=int(address.rsplit(":", 1)[1])):
            view.page.wait_for_selector("p.line", state="hidden", timeout=60_000)
            ready(view)
            assert view.page.input_value("#c-hit_rate-entry") == "0.9"


def test_the_browser_shows_the_same_digits_as_the_server(chrome: Any, home: str) -> None:
    values = [0, 0.96, 1, 1.5, 107.142857, 14_000, 155e12, 0.02, 1e-4, 0.005, 6.02e9, 14.4e12, 2**50, 999_999, 1e6, 12_345.678]
    with opened(chrome, f"{home}/explore/fleet") as view:
        ready(view)
        shown = view.page.evaluate(
            """async values => {
                 const main = document.querySelector("script[type=module]").src;
                 const { digits } = await import(main.replace("main.js", "format.js"));
               return values.map(value => digits(value)) }""", values)
    assert json.loads(json.dumps(shown)) == [digits(value) for value in values]
