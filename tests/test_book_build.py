"""The book as a reader gets it: built from nothing, rebuilt after a change, refused where something is wrong, looked at.

Most tests use a small sample book (tests/sample_book: the real configuration, appendix and extension, one chapter that
holds everything a chapter may hold); the last part builds the real book and opens every page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from browser import opened, served
from visitor import running

from inside_deepinfer.facts.store import data_folder

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = Path(__file__).parent / "sample_book"
PAGE_LIMIT = 400_000  # bytes without shared assets (issue 2)


class Book:
    """A checkout with a book of its own, in which a test may break things."""

    def __init__(self, root: Path):
        self.root = root
        shutil.copytree(SAMPLE, root, dirs_exist_ok=True)
        for name in ("_config.yml", "favicon.svg", "appendix"):
            source = ROOT / "book" / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, root / "book" / name)
        for unused in ("parameters", "errata"):
            (root / "book" / "appendix" / f"{unused}.md").unlink()
        (root / "book" / "notebooks").symlink_to("../notebooks")
        self.data = data_folder()

    def build(self, *options: str) -> subprocess.CompletedProcess[str]:
        """``inside-deepinfer build`` in this checkout, as a person would call it."""
        environment = os.environ | {"INSIDE_DEEPINFER_ROOT": str(self.root), "INSIDE_DEEPINFER_DATA": str(self.data)}
        return subprocess.run([sys.executable, "-m", "inside_deepinfer", "build", *options], env=environment, cwd=self.root,
                              capture_output=True, text=True, timeout=600, check=False)

    def page(self, name: str = "notebooks/sample") -> str:
        return (self.root / "build" / "book" / f"{name}.html").read_text(encoding="utf-8")

    def replace(self, old: str, new: str, name: str = "notebooks/sample.md") -> None:
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Book:
    """The sample book, built once."""
    book = Book(tmp_path_factory.mktemp("sample"))
    done = book.build()
    assert done.returncode == 0, done.stderr
    return book


@pytest.fixture
def book(built, tmp_path) -> Book:
    """A copy of the built sample book, cheap to rebuild."""
    copy = Book.__new__(Book)
    copy.root, copy.data = tmp_path / "checkout", built.data
    shutil.copytree(built.root, copy.root, symlinks=True)
    return copy


pytestmark = pytest.mark.book


# what a built page holds

def test_page_holds_computed_numbers_and_their_origin(built):
    page = built.page()
    assert re.search(r'<button type="button" class="num kind-derived" popovertarget="n-\w+"[^>]*>2,392</button>', page)
    assert page.count('<div popover id="n-') == len(set(re.findall(r'<div popover id="(n-\w+)"', page)))
    assert "tokens_per_day / 86400" in page.replace("<wbr>", "")


def test_page_holds_each_figure_once_and_small(built):
    page = built.page()
    assert page.count('<script type="application/vnd.plotly.v1+json">') == 2
    assert len(page.encode()) < PAGE_LIMIT


def test_answer_cell_lies_in_the_folded_answer(built):
    answer = re.search(r'<details class="answer">\s*<summary>Answer</summary>(.*?)</details>', built.page(), re.DOTALL)[1]
    assert "tag_answer" in answer and "cell_output" in answer


def test_question_above_the_line_and_answer_below_it(built):
    page = built.page()
    box = page[page.index("How much does a cached token cost"):]
    assert box.index("Show the answer") < box.index('badge verdict-')


def test_notebook_download_is_the_executed_notebook(built):
    assert 'href="../_sources/notebooks/sample.ipynb"' in built.page()
    notebook = nbformat.read(built.root / "build/book/_sources/notebooks/sample.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_claims_lead_to_their_rows_and_live_to_the_scenario(built):
    page = built.page()
    assert '../audit.html#claim-fleet.revenue_theory' in page
    assert 'id="claim-fleet.revenue_theory"' in built.page("audit")
    assert 'href="../explore/cache-prices?preset=off-peak&amp;h=0.8"' in page


def test_nothing_in_the_pages_names_this_machine_or_another_host(built):
    folder = built.root / "build" / "book"
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert str(built.root) not in text and str(ROOT) not in text, path
        assert not re.search(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//', text), path
        assert "thebe" not in text.lower().replace("sphinx-thebe.css", ""), path


def test_status_page_counts_the_claims(built):
    page = built.page("appendix/status")
    counts = [int(count) for count in re.findall(r'class="badge verdict-\w+">\w+</span></td><td>(\d+)</td>', page)]
    assert sum(counts) >= 107  # rows of the claims list (issue 2)
    assert "notebooks/sample" in page


# building again

def test_unchanged_book_is_not_built_again(book):
    done = book.build()
    assert done.returncode == 0 and "up to date" in done.stderr


def test_prose_change_appears_without_running_a_cell_again(book):
    book.replace("Everything that a chapter may hold", "Anything that a chapter can hold")
    before = sorted((book.root / "build" / "notebooks").rglob("*.ipynb"))
    stamps = [path.stat().st_mtime_ns for path in before]
    done = book.build()
    assert done.returncode == 0, done.stderr
    assert "Anything that a chapter can hold" in book.page()
    assert "notebooks/sample\n" not in done.stderr.split("reading")[0]
    assert [path.stat().st_mtime_ns for path in before] == stamps


def test_changed_value_in_data_changes_the_page(book, tmp_path):
    book.data = tmp_path / "data"
    shutil.copytree(data_folder(), book.data)
    facts = book.data / "facts" / "prices.yaml"
    text = facts.read_text(encoding="utf-8")
    changed = re.sub(r"(id: price\.v41\.cny\.miss\b.*?value: )[\d.]+", r"\g<1>2.0", text, count=1, flags=re.DOTALL)
    assert changed != text
    facts.write_text(changed, encoding="utf-8")
    assert "array([1.  " in book.page()
    done = book.build("--lenient")
    assert done.returncode == 0, done.stderr
    assert "array([2.  " in book.page()  # the cell ran again
    assert ">100</button>" in book.page()  # miss over hit: so did the roles


# refusing what is wrong

def test_failing_cell_fails_the_build_every_time_and_leaves_the_old_book(book):
    old = book.page()
    book.replace("rates = np.linspace(0.0, 0.99, 100)", "rates = np.linspace(0.0, 0.99, 100) / {}")
    for _ in range(2):
        done = book.build("--lenient")
        assert done.returncode == 2
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("error: the book was not built: notebooks/sample.md failed (TypeError")
        assert "in the cell at line" in last
    assert book.page() == old


@pytest.mark.parametrize(("old", "new", "words"), [
    ("{num}`tokens_per_day`", "{num}`tokens_per_dya`", "no derived number is called 'tokens_per_dya'"),
    ("{claim}`fleet.revenue_theory`", "{claim}`fleet.nothing`", "no claim is called 'fleet.nothing'"),
    ("{sign}`either`", "{conclusion}`nowhere.nothing`", "no conclusion is registered"),
    ("```{live} cache-prices", "```{live} cash-prices", "no dashboard page is called"),
])
def test_broken_role_is_a_warning_with_page_and_line_that_fails_the_build(book, old, new, words):
    book.replace(old, new)
    text = (book.root / "notebooks" / "sample.md").read_text(encoding="utf-8")
    line = text[:text.index(new)].count("\n") + 1
    done = book.build()
    assert done.returncode == 2
    assert words in done.stderr
    named = re.search(r"notebooks/sample\.md:(\d+):.*" + re.escape(words.split("'")[0]), done.stderr)
    assert named, done.stderr
    assert abs(int(named[1]) - line) <= 1


def test_folder_that_cannot_be_written_is_one_clear_line(book):
    blocked = book.root / "blocked"
    blocked.write_text("a file where a folder should be")
    done = book.build("--output", str(blocked / "book"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: the book was not built: ") and str(blocked) in last and "nothing was left behind" in last


# looking at it

@pytest.mark.browser
@pytest.mark.parametrize("way", ["folder", "server"])
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (375, "dark")])
def test_sample_page_is_drawn_clean_and_fits(built, chrome, way, width, theme):
    folder = built.root / "build" / "book"
    with served(folder) as address:
        home = str(folder) if way == "folder" else address
        with opened(chrome, f"{home}/notebooks/sample.html", width=width, theme=theme) as view:
            assert view.theme() == theme
            assert view.drawn() == view.islands() == [("sample-price", 2), ("sample-bars", 1)]
            view.page.wait_for_function("document.querySelectorAll('mjx-container svg').length >= 2")
            view.check()
            other = {"light": "dark", "dark": "light"}[theme]
            before = view.plots()
            view.set_theme(other)
            view.page.wait_for_function("ink => document.querySelector('.js-plotly-plot')._fullLayout.font.color !== ink",
                                        arg=before[0]["ink"])
            assert view.plots()[0]["paper"] == "rgba(0,0,0,0)"
            view.check()


@pytest.mark.browser
def test_slider_moves_the_figure_by_keyboard(built, chrome):
    with opened(chrome, str(built.root / "build/book/notebooks/sample.html")) as view:
        view.drawn()
        slider = view.page.get_by_role("slider", name="cache hit rate")
        height = "() => document.querySelectorAll('.js-plotly-plot')[1].data[0].y[0]"
        before = view.page.evaluate(height)
        slider.focus()
        view.page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == "96 %"
        view.page.wait_for_function(f"before => ({height})() !== before", arg=before)
        assert "96%" in view.page.locator("#fig-sample-bars-alt").text_content()
        view.check(axe=False)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 375])
def test_origin_of_a_number_opens_by_keyboard_and_closes(built, chrome, width):
    with opened(chrome, str(built.root / "build/book/notebooks/sample.html"), width=width) as view:
        number = view.page.locator("#words-and-numbers > p > .num.kind-derived").first
        number.focus()
        view.page.keyboard.press("Enter")
        card = view.page.locator(".chain:popover-open")
        assert card.count() == 1
        box = card.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] >= 0
        view.check()
        given = card.locator(".chain-inputs .num").first
        assert given.get_attribute("aria-haspopup") == "dialog"
        assert view.page.locator(f"#{given.get_attribute('aria-describedby')}").count() == 1
        given.click()
        assert view.page.locator(".chain:popover-open").count() == 2
        for left in (1, 0):
            view.page.keyboard.press("Escape")
            view.page.wait_for_function(f"document.querySelectorAll('.chain:popover-open').length === {left}")
            view.page.wait_for_function("document.activeElement.matches('.num')")


@pytest.mark.browser
def test_data_can_be_taken_home(built, chrome, tmp_path):
    with opened(chrome, str(built.root / "build/book/notebooks/sample.html"), accept_downloads=True) as view:
        view.drawn()
        with view.page.expect_download() as csv:
            view.page.locator("#fig-sample-price .get-csv").click()
        assert csv.value.suggested_filename == "sample-price.csv"
        lines = Path(csv.value.path()).read_text(encoding="utf-8").splitlines()
        assert lines[0] == "cache hit rate (ratio),price (CNY/Mtoken)" and lines[1] == "0,1" and len(lines) == 61
        with view.page.expect_download() as png:
            view.page.locator("#fig-sample-price .get-png").click()
        assert Path(png.value.path()).read_bytes().startswith(b"\x89PNG")


@pytest.mark.browser
def test_everything_is_drawn_before_printing(built, chrome):
    with opened(chrome, str(built.root / "build/book/notebooks/sample.html"), height=300) as view:
        view.page.wait_for_function("window.Plotly !== undefined")
        view.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert [plot["name"] for plot in view.plots() if plot["drawn"]] == ["sample-price", "sample-bars"]


@pytest.mark.browser
def test_audit_table_filters_searches_and_opens_the_row_of_a_link(built, chrome):
    address = str(built.root / "build/book/audit.html")
    with opened(chrome, Path(address).as_uri() + "#claim-fleet.revenue_theory") as view:
        assert view.page.locator("[id='claim-fleet.revenue_theory'] details").get_attribute("open") is not None
        rows = view.page.locator("table.audit tbody tr:visible")
        total = rows.count()
        view.page.locator("[data-filter=verdict]").select_option("conflict")
        conflicts = rows.count()
        assert 0 < conflicts < total
        assert view.page.locator(".audit-count").text_content() == f"{conflicts} of {total} claims"
        view.page.get_by_role("button", name="Show all").click()
        view.page.wait_for_function(f"document.querySelector('.audit-count').textContent.startsWith('{total} ')")
        view.page.locator("[data-filter=text]").fill("revenue theor")
        assert 0 < rows.count() < conflicts


@pytest.mark.browser
def test_page_without_scripts_still_says_everything(built, chrome):
    with opened(chrome, str(built.root / "build/book/notebooks/sample.html"), java_script_enabled=False) as view:
        page = view.page
        assert page.locator(".figure-slider:visible").count() == 0  # a slider that could not move is not shown
        assert page.locator("figure.figure-live figcaption").first.is_visible()
        page.locator(".figure-data summary").first.click()
        assert page.locator(".figure-data table").first.is_visible()
        page.locator("#words-and-numbers > p > .num").first.click()
        assert page.locator(".chain:popover-open").count() == 1


# the real book

def pages() -> list[str]:
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(entry["file"] for part in toc["parts"] for entry in part["chapters"]), "search", "genindex"]


@pytest.fixture(scope="module")
def real() -> Path:
    """The real book, built where something changed."""
    done = subprocess.run([sys.executable, "-m", "inside_deepinfer", "build"], cwd=ROOT, capture_output=True, text=True,
                          timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "book"


@pytest.mark.browser
@pytest.mark.parametrize("page", pages())
def test_every_page_is_drawn_clean_and_fits(real, chrome, page):
    path = real / f"{page}.html"
    assert path.stat().st_size < PAGE_LIMIT
    for width, theme in ((1280, "light"), (375, "dark")):
        with opened(chrome, str(path), width=width, theme=theme) as view:
            islands = view.islands()
            assert all(count > 0 for _, count in islands)
            if islands:
                assert view.drawn() == islands
            view.check()
            view.set_theme("dark" if theme == "light" else "light")
            view.check(axe=False)  # the other window has checked these colours, and axe takes most of the time


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 375])
def test_a_chapter_opens_its_dashboard_page_in_place(real, chrome, width):
    with running(real) as (address, _), opened(chrome, f"{address}/notebooks/revenue.html", width=width) as view:
        page = view.page
        page.locator(".live-embed summary").first.click()
        inside = page.frame_locator(".live-frame iframe")
        inside.locator(".js-plotly-plot .main-svg").first.wait_for()
        assert inside.locator(".finding").inner_text() and inside.locator("header").is_hidden()
        # as high as its content, so that nothing scrolls within the chapter
        page.wait_for_function("""() => { const frame = document.querySelector('.live-frame iframe');
            const body = frame.contentDocument.body; return Math.abs(frame.clientHeight - body.scrollHeight) < 12; }""")
        inside.locator("#c-hit_rate-entry").fill("0.8")
        inside.locator("#c-hit_rate-entry").press("Enter")
        inside.locator("#c-hit_rate[aria-valuetext='0.8']").wait_for()
        view.set_theme("dark")
        page.wait_for_function("document.querySelector('.live-frame iframe').contentDocument.documentElement.dataset.theme === 'dark'")
        assert inside.locator("#c-hit_rate-entry").input_value() == "0.8"  # another theme loses nothing
        view.check(axe=False)
