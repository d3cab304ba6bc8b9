"""The same scenario gives the same number in chapter, dashboard and command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from inside_deepinfer.commands.value import value
from inside_deepinfer.explorer import session
from inside_deepinfer.explorer.pages import all_pages
from inside_deepinfer.facts import CATALOGUE, UserError, show
from inside_deepinfer.publish.chain import look_up, parse

APP = typer.Typer()
APP.command()(value)
ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = [("published", {}), ("off-peak", {"hit_rate": "0.9"}), ("published", {"pd_ratio": "2", "ep": "32"})]


def command_line(name: str, preset: str, changes: dict[str, str]) -> dict:
    """What ``inside-deepinfer value NAME --json`` prints."""
    options = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    done = CliRunner().invoke(APP, [name, "--preset", preset, *options, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def dashboard(slug: str, preset: str, changes: dict[str, str]) -> dict[str, dict]:
    """The cards that a page sends to its visitor for a scenario."""
    page = next(page for page in all_pages().values() if page.slug == slug)
    query = "&".join([f"preset={preset}", *(f"{key}={value}" for key, value in changes.items())])
    answer = json.loads(session.answer(page, json.dumps({"id": 1, "op": "view", "query": query})))
    return {card["name"]: card for card in answer["view"]["numbers"]}


@pytest.mark.parametrize(("preset", "changes"), SCENARIOS)
@pytest.mark.parametrize("slug", [page.slug for page in all_pages().values() if page.cards and not page.prepare])
def test_a_card_of_the_dashboard_is_what_the_command_line_prints(slug, preset, changes):
    for name, card in dashboard(slug, preset, changes).items():
        if card["raw"] is None:
            continue
        assert command_line(name, preset, changes)["value"] == card["raw"], name


def roles() -> list[tuple[str, str]]:
    """Every {num} role of the chapters and pages of the book."""
    files = [path for folder in ("notebooks", "book", "book/guides") for path in sorted((ROOT / folder).glob("*.md"))]
    return [(path.stem, text.replace("\\|", "|")) for path in files
            for text in re.findall(r"\{num\}`([^`]+)`", path.read_text(encoding="utf-8"))]


def test_every_number_in_the_prose_is_what_the_command_line_prints():
    """A role without a format prints the value with its unit, rounded in the same way."""
    checked = 0
    for chapter, text in roles():
        name, preset, changes, form = parse(text)
        if name not in CATALOGUE:
            continue
        quantity, shown = look_up(text)
        if not isinstance(quantity.value, (int, float, np.number)):
            continue
        printed = command_line(name, preset, changes)
        assert printed["value"] == quantity.value, (chapter, text)
        if not form:
            assert shown == show(printed["value"], printed["unit"]), (chapter, text)
        checked += 1
    assert checked > 50


def test_dashboard_and_command_line_refuse_the_same_scenarios():
    done = CliRunner().invoke(APP, ["effective_input_price", "--set", "hit_rate=1.5"])
    assert isinstance(done.exception, (UserError, SystemExit)) or done.exit_code != 0
    page = next(page for page in all_pages().values() if page.slug == "cache-prices")
    answer = json.loads(session.answer(page, json.dumps({"id": 1, "op": "view", "query": "", "changes": {"hit_rate": "1.5"}})))
    assert any("1.5" in notice for notice in map(str, answer["view"]["notices"]))
