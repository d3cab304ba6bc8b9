"""Strip and heat maps: everything of the text is visible as text, and nothing of it is markup."""

import re
from html.parser import HTMLParser

import pytest

from inside_deepinfer.facts import load_facts
from inside_deepinfer.figures.token_matrix import carriers_figure, matrix_figure
from inside_deepinfer.figures.token_strip import STRIP_CSS, token_strip
from inside_deepinfer.tokens.laboratory import encode
from inside_deepinfer.tokens.strip import strip
from inside_deepinfer.tokens.texts import attack
from inside_deepinfer.tokens.visible import TokenText, visible

HOSTILE = ('<img src=x onerror="window.hit=1"><script>window.hit=1</script>\'"&</span></style>'
           + attack() + "\u202e\u200b\0\u2028x")


class Tags(HTMLParser):
    """Collects element names and attribute names."""

    def __init__(self):
        super().__init__()
        self.names, self.attributes, self.text = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("pipeline", ["recipe", "whole-prompt", "template"])
def test_hostile_text_is_only_text(pipeline):
    parsed = Tags()
    parsed.feed(token_strip(encode(HOSTILE, "tool-result", pipeline), style=False))
    assert parsed.names == {"div", "p", "ol", "li", "span", "bdi"}
    assert parsed.attributes <= {"class", "role", "aria-label", "aria-hidden", "title"}
    shown = "".join(parsed.text)
    assert 'onerror="window.hit=1"' in shown and "<script>" in shown
    assert not re.search("[\0\u200b\u202e\u2028]", token_strip(encode(HOSTILE, "tool-result", pipeline)))
    assert all(code in shown for code in ("⟨U+0000⟩", "⟨U+200B⟩", "⟨U+202E⟩", "⟨U+2028⟩"))


def test_control_tokens_differ_by_words_sign_and_frame():
    html = token_strip(encode(attack(), "user", "whole-prompt"), style=False)
    assert html.count('class="control template"') == 5 and html.count('class="control injected"') == 4
    assert 'aria-label="control token from the text: &lt;｜User｜&gt;, id 128803"' in html
    assert "assistant turn, opened by the text" in html
    assert "dashed" in STRIP_CSS and "double" in STRIP_CSS


def test_strip_holds_every_token_or_counts_it():
    encoded = encode("word " * 5000 + attack(), pipeline="whole-prompt")
    whole, short = strip(encoded, 10_000), strip(encoded, 50)
    assert sum(len(turn.pieces) for turn in whole) == len(encoded.ids)
    assert sum(len(turn.pieces) + turn.left_out for turn in short) == len(encoded.ids)
    assert sum(piece.kind != "text" for turn in short for piece in turn.pieces) == len(encoded.control)
    assert sum(piece.kind == "text" for turn in short for piece in turn.pieces) == 50
    assert "more tokens" in token_strip(encoded, 50)


def test_characters_spread_over_tokens_appear_once():
    texts = TokenText()
    assert [texts.show(part) for part in (b"\xf0\x9f\x98", b"\x80!", b"ok", b"\xe2", b"\x80\xae")] \
        == ["⟨F0⟩⟨9F⟩⟨98⟩", "⟨80⟩=😀!", "ok", "⟨E2⟩", "⟨80⟩⟨AE⟩=⟨U+202E⟩"]
    joined = "".join(piece.text for turn in strip(encode("😀 漢字 e\u0301")) for piece in turn.pieces)
    assert "=😀" in joined and "漢字" in joined


def test_hidden_characters_have_a_visible_form():
    assert visible("a\u202eb\ufeffc\u00ad\u3164\ufe0f") == "a⟨U+202E⟩b⟨U+FEFF⟩c⟨U+00AD⟩⟨U+3164⟩⟨U+FE0F⟩"
    assert visible("e\u0301") == "e\u0301" and visible("e" + "\u0301" * 4).count("⟨U+0301⟩") == 2
    assert visible("\u0301e").startswith("⟨U+0301⟩")
    assert visible("a b\tc\n") == "a b⇥c↵" and visible("\u00a0") == "⟨U+00A0⟩"
    assert visible("\x1b[31m") == "⟨U+001B⟩[31m"


def test_heat_maps_state_the_finding():
    figure = carriers_figure()
    meta = figure.layout.meta
    assert "deepseek-recipe: 0; whole prompt: 4; split special tokens: 3" in meta["alt"]
    assert all(source in load_facts().sources for source in meta["sources"])
    moved = matrix_figure()
    assert len(moved.frames) == len(moved.layout.sliders[0].steps) == 7
    assert moved.layout.sliders[0].steps[moved.layout.sliders[0].active].label == "whole prompt"
    assert moved.data[0].text[0][0] == "4"  # the number stands in the cell, not only its colour


@pytest.mark.browser
def test_nothing_of_the_text_runs_in_a_browser(chrome):
    page = chrome.new_page()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.set_content(token_strip(encode(HOSTILE, "tool-result", "whole-prompt")))
    page.wait_for_timeout(200)
    assert not dialogs and page.evaluate("window.hit") is None
    assert page.locator(".token-strip script, .token-strip img").count() == 0
    assert "<script>" in page.locator(".token-strip").inner_text().replace("\n", "")
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.close()
