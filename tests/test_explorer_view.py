"""What the browser is told: the same numbers as everywhere else, reasons instead of numbers that cannot be, whole chains."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.explorer import session, state, view
from inside_deepinfer.explorer.page import MAX_PRIMARY, Number, Page, Prose, Table
from inside_deepinfer.explorer.pages import ORDER, all_pages, page_of
from inside_deepinfer.facts import KINDS, NotPossible, load_facts
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.publish.live import PAGES as PAGES_OF_THE_BOOK
from inside_deepinfer.scenario import make_scenario

PAGES = list(all_pages().values())
QUERIES = ("", "h=0.5", "h=0.98&pd=3", "cur=USD&ph=0.003&pm=0.15&po=0.6")


def shown(page: Page, query: str = "", **changes: str) -> dict[str, Any]:
    reply = json.loads(session.answer(page, json.dumps(dict(id=7, op="view", query=query, changes=changes))))
    assert reply["id"] == 7
    return reply["view"]


def plain(part: Any) -> Any:
    """A figure with typed arrays as lists and without what only one of the two ways writes."""
    if isinstance(part, dict) and set(part) >= {"dtype", "bdata"}:
        array = np.frombuffer(base64.b64decode(part["bdata"]), part["dtype"]).astype(float)
        shape = [int(size) for size in part["shape"].split(",")] if "shape" in part else [-1]
        return plain(array.reshape(shape).tolist())
    if isinstance(part, dict):
        return {key: plain(value) for key, value in part.items() if key != "template"}
    if isinstance(part, (list, tuple)):
        return [plain(item) for item in part]
    return float(f"{part:.12g}") if isinstance(part, (int, float)) and not isinstance(part, bool) else part


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_figures_drawn_the_cheap_way_are_those_that_plotly_has_checked(page: Page, query: str) -> None:
    now = state.read(query, page)
    given = now.arguments()
    if page.prepare:
        given = (now.scenario, now.preset, page.prepare(*given))
    for function in page.figures:
        try:
            checked: go.Figure = function(*given)
        except NotPossible:
            continue
        cheap = draw(function, *given)
        cheap["layout"]["meta"]["table"] = view.as_rows(cheap["layout"]["meta"]["table"])
        assert plain(cheap) == plain(checked.to_plotly_json()), function.__name__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_a_card_shows_the_number_that_the_catalogue_computes(page: Page) -> None:
    for card in shown(page, "h=0.9")["numbers"]:
        value = catalogue.evaluate([card["name"]], make_scenario("published", {"h": 0.9}))[card["name"]].value
        assert (card["raw"] if isinstance(value, (int, float)) else card["big"]) == value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_a_page_declares_what_its_reader_needs(page: Page) -> None:
    fixed = view.static(page.slug)
    assert page.question.endswith("?") and page.slug in ORDER and len(page.primary) <= MAX_PRIMARY
    for control in fixed["controls"].values():
        assert control["label"] and control["doc"] and control["allowed"] and control["origin"][0]["title"]
    found = shown(page)
    assert found["finding"]["text"].rstrip()[-1] in ".!" and not found["finding"]["reason"]
    assert all(not card["reason"] and card["kind"] in KINDS and card["big"] for card in found["numbers"])
    for figure in found["figures"]:
        assert not figure["reason"] and figure["alt"] and figure["data"]
        table = figure["table"] or json.loads(session.answer(page, json.dumps(dict(id=1, op="table", name=figure["name"]))))["table"]
        assert table["rows"] and all(len(row) == len(table["columns"]) for row in table["rows"])


def test_the_book_links_to_the_pages_that_there_are() -> None:
    assert list(PAGES_OF_THE_BOOK) == list(ORDER)
    for page in PAGES:
        assert page.slug in PAGES_OF_THE_BOOK


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_extreme_inputs_give_numbers_or_reasons_and_never_a_nan(page: Page) -> None:
    for edge in (0, 1):
        changes = {}
        for name, control in view.static(page.slug)["controls"].items():
            changes[name] = str(control["options"][-edge] if "options" in control else control[("low", "high")[edge]])
        found = shown(page, "", **changes)
        assert not found["notices"]
        text = json.dumps(found)
        assert "NaN" not in text and "Infinity" not in text and view.BROKEN not in text
        assert all(card["reason"] or card["big"] for card in found["numbers"])


def broken_page(**more: Any) -> Page:
    def refuse(*_: Any) -> Any:
        raise NotPossible("the weights do not fit in HBM")

    def fall(*_: Any) -> Any:
        raise ZeroDivisionError("a secret path /somewhere/x")

    return Page(**dict(dict(slug="fleet", title="T", question="Q?", chapter="one-day", primary=("hit_rate",), finding=refuse,
                            figures=(refuse, fall), numbers=("tokens_per_second", "no_such_number", Number("miss_over_hit"))), **more))


def test_what_cannot_be_is_said_with_its_reason_and_the_rest_of_the_page_stays(caplog: pytest.LogCaptureFixture) -> None:
    page = broken_page()
    found = json.loads(view.written(view._compute(page, state.read("ph=0", page), "ph=0")))
    assert found["finding"]["reason"] == "the weights do not fit in HBM"
    assert [figure["reason"] for figure in found["figures"]] == ["the weights do not fit in HBM", view.BROKEN]
    good, unknown, divided = found["numbers"]
    assert good["big"] and not good["reason"]
    assert "no_such_number" in unknown["reason"]
    assert "price_hit" in divided["reason"] or "above 0" in divided["reason"]
    assert "secret" not in json.dumps(found) and "ZeroDivisionError" in caplog.text


def test_a_chain_ends_at_sources_and_its_formula_carries_the_numbers() -> None:
    reply = json.loads(session.answer(page_of("revenue"), json.dumps(dict(id=1, op="chain", query="h=0.9",
                                                                         name="revenue_per_cluster_gpu_hour"))))
    chain = reply["chain"]
    root = chain["parts"][chain["root"]]
    assert root["formula"].startswith("(pd_ratio *") and root["numbers"].startswith("(1 * ")
    leaves = [part for part in chain["parts"].values() if not part["inputs"]]
    assert all(part["sources"] or part["kind"] == "choice" for part in leaves)
    assert all(chain["sources"][source]["title"] for part in leaves for source in part["sources"])
    assert chain["parts"]["hit_rate"]["kind"] == "choice"


def test_a_comparison_holds_both_results_and_their_difference() -> None:
    found = shown(page_of("cache-prices"), "h=0.9&a=h%3D0.8")
    compare = found["compare"]
    assert compare["query"] == "h=0.8"
    assert compare["inputs"] == [{"label": "Cache hit rate", "a": "0.8", "b": "0.9"}]
    facts = load_facts()
    hit, miss = facts.number("price.v41.cny.hit"), facts.number("price.v41.cny.miss")
    a, b = 0.8 * hit + 0.2 * miss, 0.9 * hit + 0.1 * miss
    assert compare["numbers"][0]["raw"] == pytest.approx(a) and found["numbers"][0]["raw"] == pytest.approx(b)
    assert compare["deltas"][0]["share"] == f"\u2212{100 * (1 - b / a):.1f} %"
    assert compare["deltas"][1]["text"] == "no difference"


def test_prices_are_written_in_the_currency_of_the_scenario() -> None:
    assert shown(page_of("cache-prices"))["numbers"][0]["unit"] == "CNY/Mtoken"
    assert shown(page_of("cache-prices"), "cur=USD")["numbers"][0]["unit"] == "USD/Mtoken"


@pytest.mark.parametrize("message", [
    None, 5, "", "{", "[]", '"text"', "{}", '{"op": "steal"}', '{"op": "view", "query": 5}', '{"op": "view", "changes": []}',
    '{"op": "chain", "name": "no_such"}', '{"op": "table", "name": "no_such"}',
    '{"op": "chain", "name": {"a": 1}}', '{"op": "details", "table": "audit", "key": "x"}',
    '{"op": "view", "changes": {"hit_rate": {"a": [1]}}}', '{"op": "view", "query": "' + "x" * 40_000 + '"}'])
def test_a_message_that_makes_no_sense_is_answered_and_ends_nothing(message: Any) -> None:
    reply = json.loads(session.answer(page_of("fleet"), message))
    assert reply.get("problem") or reply["view"]["notices"]


def test_a_table_row_has_its_details_and_an_unknown_row_a_reason() -> None:
    def body(*_: Any) -> list[Table]:
        return [Table("t", "T", ("a", "b"), [["<b>x", float("nan")]], key="a", details=lambda key: [
            Prose(key), catalogue.quantity("tokens_per_second")])]

    page = broken_page(body=body)
    now = state.read("", page)
    assert view._blocks(page, now.arguments())[0]["rows"] == [["<b>x", None]]
    prose, chain = view.details(page, now, "t", "<b>x")
    assert prose["text"] == "<b>x" and chain["chain"]["root"] == "tokens_per_second"


def test_results_are_kept_for_the_next_visitor_but_not_without_bound() -> None:
    page = page_of("cache-prices")
    for number in range(view.CACHED_VIEWS + 20):
        shown(page, "", hit_rate=f"{0.2 + number / 1000:.3f}")
    assert len(view._kept) <= view.CACHED_VIEWS
    last = view._kept[next(reversed(view._kept))]
    assert view.results(page, state.read(json.loads(last)["query"], page)) is last


def test_a_page_with_too_many_or_unknown_controls_is_refused_when_it_is_declared() -> None:
    with pytest.raises(ValueError, match="at most 3"):
        broken_page(primary=("hit_rate", "pd_ratio", "gpu_cost", "infra_cost"))
    with pytest.raises(ValueError, match="no_such_input"):
        broken_page(primary=("no_such_input",))
    with pytest.raises(ValueError, match="twice"):
        broken_page(folded={"More": ("hit_rate",)})
