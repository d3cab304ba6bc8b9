"""The page KV store in a real browser: a reader's trace is answered, anything else gets one clear line, and nothing leaves the page."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import THEMES, WIDTHS, View, opened
from traces import HAND
from visitor import running

pytestmark = pytest.mark.browser
TIMEOUT = 180_000


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as (address, _):
        yield address


@pytest.fixture
def page(chrome: Any, server: str) -> Any:
    def visit(query: str = "", **more: Any) -> Any:
        return opened(chrome, f"{server}/explore/kv-store" + (f"?{query}" if query else ""), **more)

    return visit


def choose(view: View, file: Path, send: bool = True) -> None:
    view.page.set_input_files("#upload-file", str(file))
    if send:
        view.page.get_by_role("button", name="Read it").click()


def line(view: View, says: str) -> str:
    """The line under the input once it says that."""
    view.page.wait_for_function("says => document.getElementById('upload-line').textContent.includes(says)", arg=says, timeout=TIMEOUT)
    return view.page.inner_text("#upload-line")


def answered(view: View) -> str:
    view.page.wait_for_selector(".upload-answer .counts", timeout=TIMEOUT)
    return view.page.inner_text(".upload-answer")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_a_small_trace_shows_its_hand_checked_hit_rates(page: Any, width: int, theme: str) -> None:
    """data/traces/README.md: 1,280 of 2,708 tokens without limits, 512 of 1,124 in the last half, 1,024 by the block rule."""
    with page(width=width, theme=theme) as view:
        choose(view, HAND)
        text = answered(view)
        for part in ("hand.jsonl", "47.27 %", "45.55 %", "37.81 %", "338.5 tokens"):
            assert part in text, part
        rows = {row.split("\t")[0]: row.split("\t")[1] for row in text.splitlines() if row.count("\t") == 3}
        assert rows["1 min"] == "23.63 %" and rows["5 min"] == "33.09 %" and rows["10 s"] == "4.73 %"  # 640, 896 and 128 of 2,708
        assert [rows[size] for size in ("65,536 B", "131,072 B", "262,144 B", "524,288 B", "1 MiB")] == [
            "0.00 %", "14.18 %", "18.91 %", "23.63 %", "47.27 %"]  # room for 0, 1, 2, 4 and 9 blocks: 0, 384, 512, 640, 1,280
        view.page.wait_for_function("document.querySelectorAll('.upload-answer .js-plotly-plot .trace').length >= 2", timeout=TIMEOUT)
        assert view.page.inner_text("#upload-line") == ""
        assert "hand" not in view.page.url and not any("hand" in request for request in view.requests)
        view.check()
        view.page.get_by_role("button", name="Forget it").click()
        assert view.page.locator(".upload-answer").is_hidden() and not view.page.input_value("#upload-file")


def bomb(folder: Path, content: bytes) -> Path:
    """A small file that unpacks to 200 MB."""
    path = folder / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=9) as out:
        for _ in range(200):
            out.write(content * (2**20 // len(content)))
    return path


REQUEST = b'{"timestamp": 0, "input_length": 128, "output_length": 1, "hash_ids": [1]}\n'


@pytest.mark.parametrize(("name", "content", "says"), [
    ("nonsense.txt", b"The quick brown fox\njumps over the lazy dog\n", "its first line is neither a JSON object nor a CSV header"),
    ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "a PNG image"),
    ("book.html", b"<!DOCTYPE html><title>x</title><script>window.hit = 1</script>", "a web page"),
    ("objects.jsonl", b'{"a": 1}\n' * 50, "lines are damaged"),
    ("blank.jsonl", b"\n\n\n", "is empty"),
    ("cut.jsonl.gz", gzip.compress(REQUEST * 5000)[:60], "the compressed data are damaged"),
])
def test_something_else_gets_one_clear_line(page: Any, tmp_path: Path, name: str, content: bytes, says: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with page() as view:
        choose(view, file)
        text = line(view, says)
        assert text.startswith("Not possible, because the file") and "\n" not in text and name not in text
        assert view.page.locator(".upload-answer").is_hidden() and view.page.evaluate("window.hit") is None
        view.check(axe=False)


@pytest.mark.parametrize(("content", "says"), [
    (REQUEST, "expands more than 200 times"), (b"\n", "is empty"), (b"1\n", "nearly empty lines"), (b"\0", "no text")])
def test_a_gzip_bomb_gets_one_clear_line(page: Any, tmp_path: Path, content: bytes, says: str) -> None:
    with page() as view:
        choose(view, bomb(tmp_path, content))
        assert line(view, says).count("\n") == 0
        view.check(axe=False)


def test_empty_and_large_files_are_not_even_sent(page: Any, tmp_path: Path) -> None:
    empty, large = tmp_path / "empty.jsonl", tmp_path / "large.jsonl"
    empty.write_bytes(b"")
    large.write_bytes(b"x" * (16 * 2**20 + 1))
    with page() as view:
        view.page.get_by_role("button", name="Read it").click()
        line(view, "Choose a file first")
        for file, says in ((empty, "is empty"), (large, "at most 16.0 MiB are taken. Nothing was sent")):
            choose(view, file, send=False)
            line(view, says)
            view.page.get_by_role("button", name="Read it").click()
            line(view, says)
        assert not any(request.endswith("/file") for request in view.requests)
        assert "16 MiB" in view.page.inner_text("#upload-doc")
        choose(view, HAND)
        assert "47.27 %" in answered(view)


def test_keyboard_alone_sends_a_file(page: Any) -> None:
    with page() as view:
        choose(view, HAND, send=False)
        assert "not sent yet" in line(view, "not sent")
        view.page.focus("#upload-file")
        view.page.keyboard.press("Tab")
        assert view.page.evaluate("document.activeElement.textContent") == "Read it"
        view.page.keyboard.press("Enter")
        assert "47.27 %" in answered(view)
        assert view.page.evaluate("document.activeElement.tagName") == "H3"


def test_a_hostile_name_is_text(page: Any, tmp_path: Path) -> None:
    file = tmp_path / '<img src=x onerror="window.hit=1">.jsonl'
    file.write_bytes(HAND.read_bytes())
    with page() as view:
        choose(view, file)
        assert "<img src=x onerror" in answered(view)
        assert view.page.evaluate("window.hit") is None and view.page.locator(".upload-answer img").count() == 0


def test_capacities_follow_the_model_of_the_scenario(page: Any) -> None:
    with page("m=deepseek-v3") as view:
        choose(view, HAND)
        assert "70,272 B of KV per token" in answered(view)
