"""The token laboratory as the browser is told: right counts, reasons instead of results, and a text that stays private."""

from __future__ import annotations

import json
import logging
import re
import threading
from dataclasses import replace
from typing import Any

import pytest

from inside_deepinfer.explorer import background, session, state, view
from inside_deepinfer.explorer.page import Field, Page
from inside_deepinfer.explorer.pages import page_of
from inside_deepinfer.facts import load_facts
from inside_deepinfer.tokens.texts import attack, limit

PAGE = page_of("tokens")
SECRET = "my password is correct horse battery staple"
HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>' + attack() + "\u202e\u200b\0\u2028\ud83d x"


def shown(query: str = "", text: str | None = None, page: Page = PAGE, **changes: str) -> dict[str, Any]:
    """The view of one question, as the browser gets it."""
    private = {} if text is None else {"text": text}
    reply = json.loads(session.answer(page, json.dumps(dict(id=1, op="view", query=query, changes=changes, private=private))))
    assert "view" in reply, reply
    return reply["view"]


def block(found: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in found["blocks"] if one["type"] == kind)


def counts(found: dict[str, Any]) -> dict[str, str]:
    return {one["label"]: one["text"] for one in block(found, "counts")["counts"]}


def test_the_page_opens_with_the_articles_text_5_and_4():
    """Article 001, first experiment: 9 control tokens through the whole prompt, 4 of them injected."""
    found = shown()
    assert counts(found)["control tokens of the template"] == "5" and counts(found)["control tokens from the text"] == "4"
    assert "4 of 9 control tokens come from the text" in found["finding"]["text"]
    assert "and 2 turns are opened by the text." in found["finding"]["text"]  # an assistant's and a user's
    assert "Through deepseek-recipe the same text places no control tokens." in found["finding"]["text"]
    rows = {row[0]: row[1:5] for row in block(found, "table")["rows"]}
    assert rows["deepseek-recipe"] == ["safe", 0, 5, 0] and rows["split special tokens"] == ["injected", 3, 3, 2]
    assert found["figures"][0]["name"] == "token-carriers-exact"


def test_a_strip_marks_by_shape_and_words_what_the_text_placed():
    pieces = [piece for turn in block(shown(), "strip")["turns"] for piece in turn["pieces"]]
    marked = [piece for piece in pieces if len(piece) == 4]
    assert [piece[1] for piece in marked].count("⚠") == 4 and [piece[1] for piece in marked].count("◆") == 5
    assert "control token from the text: <｜User｜>, id 128803" in {piece[3] for piece in marked}
    assert any(turn["forged"] and turn["label"] == "user turn, opened by the text" for turn in block(shown(), "strip")["turns"])


@pytest.mark.parametrize("example", PAGE.examples, ids=lambda example: example.label)
def test_every_example_shows_what_it_says(example):
    values = dict(example.values)
    found = shown(text=values.pop("text"), **values)
    verdict = {row[0]: row[1] for row in block(found, "table")["rows"]}
    chosen = {name: field for name, field in found["fields"].items()}
    assert chosen == values and not found["notices"]
    # every attack stands beside the design that stops it, and the one that needs no marker beside the warning
    leaves = example.label == "Out of a tool result"
    assert verdict["deepseek-recipe"] == ("frame-closed" if leaves else "safe")
    assert ("The text leaves its frame" in [one.get("title") for one in found["blocks"]]) == leaves
    injected = int(counts(found)["control tokens from the text"])
    expected = {"The article's text, no defence": 4, "In a tool result": 4, "“Split special tokens”": 3, "Nested, against deletion": 4,
                "JSON escapes, against every filter": 4}
    assert injected == expected.get(example.label, 0)


def test_a_typed_text_enters_no_address_and_is_not_kept_and_not_sent_back():
    before = dict(view._kept)
    now = state.with_private(state.read("carrier=system", PAGE), PAGE, {"text": SECRET, "carrier": "user"})
    assert now.fields["text"] == SECRET and now.fields["carrier"] == "system"  # only private fields travel that way
    assert state.address(now, PAGE) == "carrier=system"
    found = shown("carrier=system", SECRET)
    assert "text" not in found["fields"] and "password" not in found["query"]
    assert view._kept == before


def test_a_mistake_of_ours_is_logged_without_the_text(caplog):
    def fall(_scenario: Any, _preset: str, fields: dict[str, str]) -> Any:
        raise ZeroDivisionError(fields["text"])

    with caplog.at_level(logging.DEBUG):
        found = shown("", SECRET, replace(PAGE, prepare=fall))
    assert found["finding"]["reason"] == view.BROKEN
    assert "ZeroDivisionError" in caplog.text and "fall" in caplog.text and "password" not in caplog.text


def test_a_link_holds_a_short_text_and_refuses_a_long_one():
    opening = json.loads(session.opening(PAGE, "text=hi+%3C%EF%BD%9CUser%EF%BD%9C%3E&pipeline=recipe"))["view"]
    assert opening["fields"]["text"] == "hi <｜User｜>" and opening["waiting"] and not opening["notices"]
    long = json.loads(session.opening(PAGE, "text=" + "a" * 401))["view"]
    assert long["fields"]["text"] == attack()
    assert long["notices"] == ["Text: a link holds at most 400 characters; this one was not used."]


def test_the_page_opens_before_anything_is_encoded(monkeypatch):
    monkeypatch.setattr("inside_deepinfer.explorer.pages.tokens.trial", lambda *_: pytest.fail("encoded while the page was written"))
    opening = json.loads(session.opening(PAGE, ""))["view"]
    assert opening["waiting"] and opening["blocks"] == [] and opening["figures"] == []


@pytest.mark.parametrize("text", ["a" * (limit() + 1), "漢" * (limit() // 3 + 1)], ids=["one byte a character", "three bytes"])
def test_a_text_above_the_limit_is_refused_with_the_limit(text):
    found = shown(text=text)
    assert "1,048,576" in found["finding"]["reason"] and found["blocks"] == []
    assert "1,048,576" in found["figures"][0]["reason"]


def test_a_message_far_above_the_limit_is_refused_unread():
    reply = json.loads(session.answer(PAGE, "x" * (session.most(PAGE) + 1)))
    assert "too long" in reply["problem"]


def test_a_longer_text_is_shown_without_the_comparison():
    text = "a line of a log\n" * 1000
    found = shown(text=text)
    assert counts(found)["control tokens from the text"] == "0"
    assert "4,096 bytes" in found["figures"][0]["reason"]
    assert not any(one["type"] == "table" for one in found["blocks"])


@pytest.mark.parametrize("pipeline", ["recipe", "whole-prompt", "nfkc-delete"])
def test_hostile_text_arrives_as_visible_text(pipeline):
    found = shown(text=HOSTILE, pipeline=pipeline)
    strip = "".join(piece[0] if len(piece) == 1 else piece[2] for turn in block(found, "strip")["turns"] for piece in turn["pieces"])
    assert "onerror" in strip and "script" in strip
    assert all(f"⟨{code}⟩" in strip for code in ("U+202E", "U+200B", "U+0000"))
    assert not re.search("[\0\u200b\u202e\u2028\ud800-\udfff]", json.dumps(found, ensure_ascii=False))
    assert any(one.get("title") == "Replaced" and "surrogate" in one["text"] for one in found["blocks"])


def test_a_wrong_choice_in_the_address_is_said_and_an_impossible_one_has_its_reason():
    found = shown("carrier=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&pipeline=recipe")
    assert found["fields"]["carrier"] == "user" and "“<img src=x onerror=alert(1)>” was not used" in found["notices"][0]
    assert shown("carrier=tool-name&spelling=messages")["finding"]["reason"] == "tool name cannot be split over messages"


def test_a_refused_request_says_so():
    titles = [one.get("title") for one in shown("carrier=tool-name&pipeline=recipe")["blocks"]]
    assert "Refused before encoding" in titles


def test_the_exception_and_the_tokenizer_are_named():
    facts = load_facts()
    notes = {one["title"]: one["text"] for one in shown("carrier=image")["blocks"] if one["type"] == "prose"}
    assert "becomes no placeholders" in notes["The one exception"] and "becomes 1 placeholder" in notes["The one exception"]
    said = notes["Which tokenizer this is"]
    for name in ("system_spelling", "image_spelling_reported"):
        assert str(facts.quantity(f"tokens.{name}").value) in said
    assert "The one exception" not in [one.get("title") for one in shown()["blocks"]]


def test_long_texts_wait_in_a_lane_of_their_own_and_not_without_bound():
    gate, done = threading.Event(), []
    try:
        taken = [background.run(background.SHORT + 1, lambda: gate.wait(20)) for _ in range(background.MOST_WAITING["long"] + 1)]
        assert taken == [True] * background.MOST_WAITING["long"] + [False]
        passed = threading.Event()
        assert background.run(10, lambda: (done.append(1), passed.set())) and passed.wait(20)
    finally:
        gate.set()
    assert "too many texts" in json.loads(session.busy(PAGE, '{"id": 3, "op": "view"}'))["problem"]


def test_a_private_field_needs_a_page_that_keeps_no_results():
    with pytest.raises(ValueError, match="private"):
        Page(slug="x", title="X", question="Q?", chapter="tokens", primary=(), finding=lambda *_: "",
             fields=(Field("text", "Text", "", "", private=True),))
