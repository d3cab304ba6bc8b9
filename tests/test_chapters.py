"""What every chapter keeps: it says all that is registered for it, shows its claims, and its numbers exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inside_deepinfer.conclusions import CONCLUSIONS
from inside_deepinfer.facts import load_facts
from inside_deepinfer.publish.chain import look_up

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CHAPTERS = sorted(path.stem for path in NOTEBOOKS.glob("*.md"))


def text_of(chapter: str) -> str:
    return (NOTEBOOKS / f"{chapter}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_says_all_that_is_registered_for_it(chapter):
    said = re.findall(r"\{conclusion\}`([^`]+)`", text_of(chapter))
    assert {name for name, entry in CONCLUSIONS.items() if entry.chapter == chapter} <= set(said)


@pytest.mark.parametrize("chapter", sorted({claim.chapter for claim in load_facts().claims.values()}))
def test_a_chapter_shows_its_claims(chapter):
    shown = set(re.findall(r"\{claim\}`([^`]+)`", text_of(chapter)))
    assert {claim.id for claim in load_facts().claims.values() if claim.chapter == chapter} <= shown


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_number_of_the_prose_exists(chapter):
    for number in re.findall(r"\{num\}`([^`]+)`", text_of(chapter)):
        assert look_up(number.replace(r"\|", "|"))[1]  # a bar within a table is written with a backslash
