"""One state of one page as plain data: what the browser draws. No widget, no HTML, no Panel in here."""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from traceback import format_tb
from typing import Any

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.explorer import controls, provenance, state
from inside_deepinfer.explorer.page import Number, Page, Table
from inside_deepinfer.explorer.pages import all_pages, page_of
from inside_deepinfer.explorer.plain import plain
from inside_deepinfer.explorer.state import State
from inside_deepinfer.facts import KIND_MEANING, Quantity, UserError, digits, load_facts
from inside_deepinfer.facts.units import show_decimal
from inside_deepinfer.figures import theme
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.figures.figure import plain_table
from inside_deepinfer.scenario import defaults

log = logging.getLogger(__name__)
CACHED_VIEWS = 128  # at most 40 kB each
_BIG = re.compile(r"(-?[\d.,]+(?: (?:trillion|billion|million))?)\s*(.*)", re.DOTALL)
_kept: OrderedDict[tuple[str, str], str] = OrderedDict()
BROKEN = "something went wrong on our side; the server's log has the details"


def reason_of(error: Exception, what: str, page: Page | None = None) -> str:
    """What stands in the place of a result that there is none of."""
    if isinstance(error, (UserError, ValueError)):
        return str(error)
    log_failure(what, error, page)
    return BROKEN


def log_failure(what: str, error: Exception, page: Page | None = None) -> None:
    """A mistake of ours; the words of the error stay out where a visitor's private text might stand in them."""
    if page is not None and any(entry.private for entry in page.fields):
        log.error("%s failed: %s\n%s", what, type(error).__name__, "".join(format_tb(error.__traceback__)))
    else:
        log.error("%s failed", what, exc_info=error)


def attempt(what: str, function: Callable[..., Any], *arguments: Any, page: Page | None = None) -> tuple[Any, str]:
    """(result, "") or (None, reason); one part that fails never takes the page with it."""
    try:
        return function(*arguments), ""
    except Exception as error:
        return None, reason_of(error, what, page)


@cache
def static(slug: str) -> dict[str, Any]:
    """What a page shows whatever the scenario is."""
    page, facts = page_of(slug), load_facts()
    groups = [dict(title="", controls=list(page.primary))]
    groups += [dict(title=title, controls=list(names)) for title, names in page.folded.items()]
    return dict(
        slug=page.slug, title=page.title, question=page.question, chapter=page.chapter,
        pages=[dict(slug=other.slug, title=other.title) for other in all_pages().values()],
        presets=[dict(id=preset.id, label=preset.label, doc=preset.doc) for preset in facts.presets.values()],
        groups=groups, controls={name: controls.specification(name) for name in page.controls},
        fields=[dict(key=entry.key, label=entry.label, doc=entry.doc, options=list(entry.options), lines=entry.lines,
                     max_length=entry.max_length, about={option: list(about) for option, about in entry.about.items()},
                     private=entry.private, max_bytes=entry.max_bytes, value=entry.default) for entry in page.fields],
        examples=[dict(label=example.label, doc=example.doc, values=dict(example.values)) for example in page.examples],
        upload=_upload(page), kinds=KIND_MEANING, marks={kind: list(mark) for kind, mark in theme.KIND_MARK.items()}, palette=theme.PALETTE,
        templates=[_template(dark) for dark in (False, True)],
    )


def _upload(page: Page) -> dict[str, Any] | None:
    given = page.upload
    return given and dict(title=given.title, label=given.label, doc=given.doc, accept=",".join(given.accept), max_bytes=given.max_bytes)


def _template(dark: bool) -> dict[str, Any]:
    plain: dict[str, Any] = theme.template(dark).to_plotly_json()
    return plain


def view(page: Page, now: State) -> str:
    """Everything that depends on the state, as JSON; with a scenario A also A's results and the differences."""
    shown = results(page, now)
    more: dict[str, Any] = dict(notices=list(now.notices), view=now.view, theme=now.theme, compare=None)
    if now.compare is not None:
        a, b = json.loads(results(page, state.read(now.compare, page))), json.loads(shown)
        more["compare"] = dict(query=now.compare, finding=a["finding"], numbers=a["numbers"], figures=a["figures"],
                               inputs=_input_differences(page, now), deltas=_deltas(page, a, b))
    return f"{shown[:-1]},{written(more)[1:]}"


def written(part: Any) -> str:
    """Compact JSON; a NaN in it is an error here and not in the browser."""
    return json.dumps(part, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def results(page: Page, now: State) -> str:
    """What the page says about a state; kept, because many visitors look at the same few."""
    key = (page.slug, state.address(now, page))
    if page.prepare:
        return written(_compute(page, now, key[1]))
    if key not in _kept:
        _kept[key] = written(_compute(page, now, key[1]))
        if len(_kept) > CACHED_VIEWS:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def pending(page: Page, now: State) -> str:
    """The state without its result, for a page whose browser asks for that later; private fields of the address included."""
    private = {entry.key: now.fields[entry.key] for entry in page.fields if entry.private}
    frame = _frame(page, now, state.address(now, page))
    frame["fields"] |= private
    return written(frame | _nothing(page, "") | dict(notices=list(now.notices), view=now.view, theme=now.theme, compare=None,
                                                     waiting=True))


def _compute(page: Page, now: State, query: str) -> dict[str, Any]:
    with catalogue.shared(now.scenario, now.preset):
        return _computed(page, now, query)


def _computed(page: Page, now: State, query: str) -> dict[str, Any]:
    slug, given = page.slug, now.arguments()
    if page.prepare:
        prepared, reason = attempt(f"{slug}: prepare", page.prepare, *given, page=page)
        if reason:
            return _frame(page, now, query) | _nothing(page, reason)
        given = (now.scenario, now.preset, prepared)
    finding, reason = attempt(f"{slug}: finding", page.finding, *given, page=page)
    return _frame(page, now, query) | dict(
        finding=dict(text=finding, reason=reason), numbers=_cards(page, now),
        figures=[_figure(page, function, given) for function in page.figures], blocks=_blocks(page, given))


def _frame(page: Page, now: State, query: str) -> dict[str, Any]:
    """The state itself; a private text is not sent back."""
    given = catalogue.evaluate(page.controls, now.scenario, now.preset)
    base_currency = state.preset_values(now.preset).get("currency", state.defaults()["currency"][1])
    return dict(
        query=query, preset=now.preset, currency=now.scenario.currency,
        fields={entry.key: now.fields[entry.key] for entry in page.fields if not entry.private},
        controls={name: controls.current(quantity) for name, quantity in given.items()},
        changed=[dict(name=name, label=str(state.parameters()[name].label), text=state.shown(name, value, now.scenario.currency),
                      was=state.shown(name, base, base_currency), here=name in page.controls)
                 for name, base, value in state.differences(now)])


def _nothing(page: Page, reason: str) -> dict[str, Any]:
    """No result, and why."""
    return dict(finding=dict(text="", reason=reason), numbers=[], blocks=[],
                figures=[dict(name=function.__name__.replace("_", "-"), reason=reason) for function in page.figures if reason])


def _cards(page: Page, now: State) -> list[dict[str, Any]]:
    names = [entry.name for entry in page.cards]
    try:
        together = catalogue.evaluate(names, now.scenario, now.preset)
    except Exception:
        together = {}
    return [_card(entry, now, together.get(entry.name)) for entry in page.cards]


def _card(entry: Number, now: State, found: Quantity | None) -> dict[str, Any]:
    name, reason = entry.name, ""
    if found is None:
        found, reason = attempt(name, lambda: catalogue.evaluate([name], now.scenario, now.preset)[name])
    declared = catalogue.CATALOGUE.get(name)
    label = entry.label or (found.label if found else declared.label if declared else name)
    card: dict[str, Any] = dict(name=name, label=label, big="", unit="", kind="derived", rests_on=[], reason=reason, beside=None,
                                raw=None)
    if found is None:
        return card
    if isinstance(found.value, (int, float)) and not np.isfinite(found.value):
        return card | dict(reason="the formula has no finite value for these inputs")
    card |= dict(zip(("big", "unit"), split(found, entry, now.scenario.currency), strict=True))
    card |= dict(kind=found.kind, rests_on=provenance.leaf_kinds(found) if found.inputs else [],
                 raw=found.value if isinstance(found.value, (int, float)) else None)
    if entry.beside and all(getattr(now.scenario, name) == defaults()[name][1] for name in entry.same):
        stated = load_facts().quantity(entry.beside)
        big, unit = split(stated, entry, now.scenario.currency)
        card["beside"] = dict(name=entry.beside, text=f"{big} {unit}".strip(), kind=stated.kind)
    return card


def split(quantity: Quantity, entry: Number, currency: str) -> tuple[str, str]:
    """The number, large, and its unit, small."""
    if entry.show == "percent":
        return digits(100 * float(quantity.value)), "%"
    decimal = entry.show == "decimal" and isinstance(quantity.value, (int, float))
    text = show_decimal(quantity.value, quantity.unit) if decimal else provenance.value_text(quantity, currency)
    match = _BIG.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def _figure(page: Page, function: Callable[..., Any], given: tuple[Any, ...]) -> dict[str, Any]:
    figure, reason = attempt(f"{page.slug}: {function.__name__}", draw, function, *given, page=page)
    if figure is None:
        return dict(name=function.__name__.replace("_", "-"), reason=reason)
    return drawn(figure, with_table=page.prepare is not None)


def drawn(figure: dict[str, Any], with_table: bool = True) -> dict[str, Any]:
    """A drawn figure as the browser gets it; without its table where the page can ask for that later."""
    meta = figure["layout"].pop("meta")
    return dict(name=meta["name"], alt=meta["alt"], table=as_rows(meta["table"]) if with_table else None, reason="",
                data=figure["data"], layout=figure["layout"])


def as_rows(table: Any) -> dict[str, Any]:
    """The table of a drawn figure as columns and rows."""
    return table if isinstance(table, dict) else plain_table(table)


def table(page: Page, now: State, name: str) -> dict[str, Any]:
    """The numbers behind one figure. Asked for when somebody opens them: they cost as much as the figure."""
    for function in page.figures if not page.prepare else ():
        figure, _ = attempt(f"{page.slug}: {function.__name__}", draw, function, *now.arguments(), page=page)
        if figure is not None and figure["layout"]["meta"]["name"] == name:
            return as_rows(figure["layout"]["meta"]["table"])
    raise UserError(f"there is no figure {name!r} on this page")


def _blocks(page: Page, given: tuple[Any, ...]) -> list[dict[str, Any]]:
    if page.body is None:
        return []
    blocks, reason = attempt(f"{page.slug}: body", page.body, *given, page=page)
    return [dict(type="prose", text=reason, tone="warn", title="Not possible")] if blocks is None else [plain(b) for b in blocks]


def _input_differences(page: Page, now: State) -> list[dict[str, str]]:
    other = state.read(now.compare or "", page)
    a, b = other.scenario, now.scenario
    return [dict(label=state.label_of(name), a=state.shown(name, getattr(a, name), a.currency),
                 b=state.shown(name, getattr(b, name), b.currency))
            for name in state.parameters() if getattr(a, name) != getattr(b, name)]


def _deltas(page: Page, a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, str] | None]:
    """B minus A of every card, absolute and relative to A; None where one of them is no number."""
    return [_delta(entry, left["raw"], right["raw"], right["unit"] if left["unit"] == right["unit"] else "")
            for entry, left, right in zip(page.cards, a["numbers"], b["numbers"], strict=True)]


def _delta(entry: Number, a: float | None, b: float | None, unit: str) -> dict[str, str] | None:
    if a is None or b is None:
        return None
    if a == b:
        return dict(text="no difference", share="")
    if entry.show == "percent":
        return dict(text=f"{_signed(100 * (b - a))} percentage points", share="")
    declared = catalogue.CATALOGUE.get(entry.name)
    step = Quantity("", abs(b - a), declared.unit if declared else unit, "derived")
    size = show_decimal(step.value, step.unit) if entry.show == "decimal" else provenance.value_text(step, "price")
    text = ("+" if b > a else "\u2212") + size.replace("price/", "")
    return dict(text=text, share=f"{_signed(100 * (b / a - 1), 3)} %" if a else "")


def _signed(value: float, significant: int = 4) -> str:
    return ("+" if value >= 0 else "\u2212") + digits(abs(value), significant)


def chain(page: Page, now: State, name: str) -> dict[str, Any]:
    """The chain behind one number of the page."""
    found = catalogue.evaluate([name], now.scenario, now.preset)[name]
    return provenance.chain(found, now.scenario.currency)


def details(page: Page, now: State, table: str, key: str) -> list[dict[str, Any]]:
    """What stands behind one row of a table: prose and chains."""
    blocks = page.body(*now.arguments()) if page.body and not page.prepare else ()
    for block in blocks:
        if isinstance(block, Table) and block.name == table and block.details is not None:
            return [dict(type="chain", chain=provenance.chain(part, now.scenario.currency)) if isinstance(part, Quantity)
                    else plain(part) for part in block.details(key)]
    raise UserError(f"there is no table {table!r} with details on this page")
