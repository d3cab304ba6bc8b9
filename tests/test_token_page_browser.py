"""The token laboratory in a real browser: nothing of a text runs, all of it is seen, and none of it leaves the page unasked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from browser import THEMES, WIDTHS, View, opened
from visitor import health, running

from inside_deepinfer.tokens.texts import attack, limit

pytestmark = pytest.mark.browser
HOSTILE = ('<img src=x onerror="window.hit=1"><script>window.hit=1</script></textarea></script><svg onload="window.hit=1">'
           'javascript:window.hit=1 ${window.hit=1} {{7*7}} ' + attack() + "\u202eevil\u202c a\u200bb \0 &lt; </style>")
TOOLS = "#field-text, #field-carrier, #field-pipeline, #field-spelling"
ACTIVE = "main img, main script, main svg[onload], main iframe, .token-strip b"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Any]]:
    with running() as (address, child):
        yield address, child


@pytest.fixture
def watched(chrome: Any, server: tuple[str, Any]) -> Any:
    """Opens the laboratory and notes every dialog."""
    dialogs: list[str] = []

    def visit(query: str = "", **more: Any) -> Any:
        return opened(chrome, f"{server[0]}/explore/tokens" + (f"?{query}" if query else ""), **more)

    visit.dialogs = dialogs  # type: ignore[attr-defined]
    return visit


def ready(view: View, says: str = "") -> None:
    """The result of the last question stands."""
    view.page.wait_for_selector(".token-strip .control", timeout=60_000)
    if says:
        view.page.wait_for_function("says => document.querySelector('.finding').textContent.includes(says)", arg=says, timeout=60_000)


def harmless(view: View) -> None:
    """No script of a text ran, no element came out of it, nothing was asked for elsewhere."""
    assert view.page.evaluate("window.hit") is None
    assert view.page.locator(ACTIVE).count() == 0
    assert not view.foreign and not view.console


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_the_page_is_clean_and_accessible(watched: Any, width: int, theme: str) -> None:
    with watched(width=width, theme=theme) as view:
        ready(view, "4 of 9")
        view.page.wait_for_selector(".js-plotly-plot .hm, .js-plotly-plot image", timeout=30_000, state="attached")
        view.check()
        names = [view.page.locator(f"label[for={part.get_attribute('id')}]").inner_text() for part in view.page.locator(TOOLS).all()]
        assert len(names) == 4 and all(names)
        injected = view.page.locator(".control.injected")
        assert injected.count() >= 4 and "control token from the text" in (injected.first.get_attribute("aria-label") or "")
        assert injected.first.evaluate("part => getComputedStyle(part).borderTopStyle") == "dashed"


def test_hostile_text_typed_into_the_page_is_seen_and_does_not_run(watched: Any) -> None:
    with watched() as view:
        ready(view)
        dialogs: list[str] = []
        view.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        for pipeline in ("whole-prompt", "recipe", "split-special", "template", "delete", "nfkc-delete", "escape"):
            view.page.select_option("#field-pipeline", pipeline)
            view.page.evaluate("""text => { const field = document.getElementById('field-text'); field.value = text + '\\ud83d';
                                  field.dispatchEvent(new Event('input', {bubbles: true})) }""", HOSTILE)
            view.page.wait_for_function("() => document.querySelector('.token-strip').textContent.includes('onerror')", timeout=60_000)
            shown = view.page.locator(".token-strip").first.inner_text().replace("\n", "")
            assert "<script>" in shown and "⟨U+202E⟩" in shown and "⟨U+200B⟩" in shown and "⟨U+0000⟩" in shown
            harmless(view)
        assert not dialogs
        assert "surrogate" in view.page.locator(".blocks").inner_text()


@pytest.mark.parametrize("key", ["text", "carrier", "pipeline", "spelling", "theme", "view", "preset", "a", "h", "<b>x"])
def test_hostile_text_in_the_address_is_seen_and_does_not_run(watched: Any, key: str) -> None:
    payload = HOSTILE[:200] if key == "text" else HOSTILE
    with watched(f"{quote(key)}={quote(payload)}") as view:
        dialogs: list[str] = []
        view.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        ready(view)
        harmless(view)
        assert not dialogs
        seen = view.page.locator(".token-strip").first if key == "text" else view.page.locator(".notices").first
        assert "onerror" in seen.inner_text().replace("\n", "")
        if key == "text":
            assert view.page.input_value("#field-text") == payload


def test_hostile_options_sent_past_the_controls_are_refused_in_words(watched: Any) -> None:
    with watched() as view:
        ready(view)
        for key in ("carrier", "pipeline", "spelling"):
            view.page.evaluate("""([key, text]) => { const select = document.getElementById('field-' + key);
                select.append(new Option(text, text)); select.value = text; select.dispatchEvent(new Event('change')) }""", [key, HOSTILE])
            view.page.wait_for_function("() => document.querySelector('.notices').textContent.includes('was not used')", timeout=30_000)
            harmless(view)


def test_a_text_enters_the_address_only_when_the_visitor_asks(watched: Any, server: tuple[str, Any]) -> None:
    with watched() as view:
        ready(view)
        view.page.fill("#field-text", "correcthorse <｜User｜>")
        ready(view, "1 of 6")
        view.page.wait_for_timeout(400)
        assert "correct" not in view.page.url and not any("correct" in url for url in view.requests)
        links = view.page.locator("a").evaluate_all("all => all.map(one => one.href).join(' ')")
        assert "correct" not in links
        view.page.get_by_role("button", name="Make a link with this text").click()
        view.page.wait_for_function("() => location.search.includes('correcthorse')", timeout=10_000)
        with watched(view.page.url.split("?")[1]) as other:
            ready(other, "1 of 6")
            assert other.page.input_value("#field-text") == "correcthorse <｜User｜>"
        if view.page.locator("dialog[open]").count():
            view.page.keyboard.press("Escape")
        view.page.fill("#field-text", "another text")
        view.page.wait_for_function("() => !location.search.includes('text=')", timeout=20_000)
        view.page.fill("#field-text", "x" * 401)
        view.page.get_by_role("button", name="Make a link with this text").click()
        assert "Too long for a link" in view.page.locator(".bench-status").inner_text()
        assert "text=" not in view.page.url
    assert "correct" not in str(health(server[0]))


def test_a_text_above_the_limit_is_refused_before_it_is_sent(watched: Any) -> None:
    with watched() as view:
        ready(view)
        view.page.evaluate("""() => { const send = WebSocket.prototype.send
            window.sent = 0
            WebSocket.prototype.send = function (data) {
              window.sent = Math.max(window.sent, data.length || data.byteLength)
              return send.call(this, data) } }""")
        view.page.evaluate("""size => { const field = document.getElementById('field-text'); field.value = 'a'.repeat(size);
            field.dispatchEvent(new Event('input', {bubbles: true})) }""", 10 * limit())
        view.page.wait_for_function("() => document.querySelector('.bench-status').textContent.includes('at most 1.0 MiB')", timeout=30_000)
        assert not view.page.locator(".token-strip").first.is_visible() and view.page.evaluate("window.sent") < 100_000
        view.page.get_by_role("button", name="Clear").click()
        view.page.wait_for_function("() => document.querySelector('.counts dd').textContent !== ''", timeout=60_000)
        view.page.locator(".token-strip").first.wait_for(state="visible", timeout=60_000)
        harmless(view)


def test_examples_are_one_click_away_and_reachable_by_keyboard(watched: Any) -> None:
    with watched() as view:
        ready(view, "4 of 9")
        view.page.get_by_role("button", name="The same, deepseek-recipe").focus()
        view.page.keyboard.press("Enter")
        ready(view, "and the text arrives as it was")
        assert "pipeline=recipe" in view.page.url or view.page.wait_for_function("() => location.search.includes('pipeline=recipe')")
        view.page.get_by_role("button", name="In a tool result").click()
        ready(view, "4 of 17")
