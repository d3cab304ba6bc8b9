"""Every sentence that the book prints as a conclusion still holds, and every chapter uses the ones registered for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inside_deepinfer.conclusions import CONCLUSIONS

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
USED = re.compile(r"\{conclusion\}`([^`]+)`")


@pytest.mark.parametrize("name", sorted(CONCLUSIONS))
def test_the_sentence_holds(name):
    entry = CONCLUSIONS[name]
    assert entry.holds(), f"no longer true, so chapter {entry.chapter} must change: {entry.sentence}"


def test_sentences_are_sentences_and_ids_name_their_chapter():
    for entry in CONCLUSIONS.values():
        assert re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", entry.id), entry.id
        assert entry.sentence[0].isupper() and entry.sentence.endswith("."), entry.sentence
        assert not re.search(r"\d{2,}\.\d|%", entry.sentence), f"a number that the test cannot see: {entry.sentence}"


@pytest.mark.parametrize("name", sorted(CONCLUSIONS))
def test_a_registered_conclusion_is_printed_in_its_chapter(name):
    chapter = NOTEBOOKS / f"{CONCLUSIONS[name].chapter}.md"
    if not chapter.exists():
        pytest.skip("chapter not written yet")
    assert name in USED.findall(chapter.read_text("utf-8")), f"{name} is registered and printed nowhere in {chapter.name}"


def test_every_printed_conclusion_is_registered():
    printed = {name for path in NOTEBOOKS.glob("*.md") for name in USED.findall(path.read_text("utf-8"))}
    assert printed <= set(CONCLUSIONS)
