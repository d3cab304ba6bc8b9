"""Every derived number: its printed formula is what its function does, its chain ends at sources, arrays do as scalars do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import CATALOGUE, NotPossible, Quantity, UserError, derived, load_facts, resolve
from inside_deepinfer.facts.derive import order_of
from inside_deepinfer.scenario import FactChoice, FactInteger, make_scenario, parameters, quantities

PRESETS = list(load_facts().presets)
NAMES = sorted(CATALOGUE)


@cache
def everything(preset: str) -> dict[str, Quantity | UserError]:
    """Every derived number of the catalogue for a preset; where the scenario cannot exist, the reason."""
    known: dict[str, Quantity] = dict(quantities(make_scenario(preset), preset))
    found: dict[str, Quantity | UserError] = {}
    for name in dict.fromkeys(node for wanted in NAMES for node in order_of(wanted)):
        try:
            found[name] = known[name] = resolve([name], known)[name]
        except (NotPossible, UserError) as error:
            found[name] = error
    return found


def computed(preset: str) -> Iterator[Quantity]:
    return (quantity for quantity in everything(preset).values() if isinstance(quantity, Quantity))


# ---- what a reader is shown is what was computed ---------------------------------------------------------------------------

@pytest.mark.parametrize("preset", PRESETS)
def test_the_formula_gives_what_the_function_gives(preset):
    wrong = []
    for quantity in computed(preset):
        entry = CATALOGUE[quantity.name]
        if entry.words:
            continue
        values = {parameter: np.asarray(part.value) if not isinstance(part.value, str) else part.value
                  for parameter, part in zip(entry.inputs, quantity.inputs, strict=True)}
        by_formula = eval(quantity.formula, {"__builtins__": {}, "np": np}, values)
        if not np.allclose(by_formula, quantity.value, rtol=1e-12, atol=0):
            wrong.append(f"{quantity.name} = {quantity.formula}: {by_formula}, but the function gives {quantity.value}")
    assert not wrong, "\n".join(wrong)


def test_a_formula_names_all_its_inputs_and_nothing_else():
    for name, entry in CATALOGUE.items():
        if not entry.words:
            named = set(re.findall(r"[a-z_][a-z_0-9]*", re.sub(r"\b\d[\d.]*e\d+\b", "", entry.formula)))
            assert named == set(entry.inputs), name


def test_every_number_says_what_it_is():
    for name, entry in CATALOGUE.items():
        assert entry.label and entry.formula and entry.doc and not entry.label.endswith("."), name


def test_the_published_preset_computes_everything():
    failed = {name: str(error) for name, error in everything("published").items() if not isinstance(error, Quantity)}
    assert not failed


@pytest.mark.parametrize("preset", PRESETS)
def test_what_a_preset_cannot_compute_says_why_in_one_line(preset):
    for name, found in everything(preset).items():
        if not isinstance(found, Quantity):
            assert isinstance(found, NotPossible) and "\n" not in str(found), f"{name}: {found}"


@pytest.mark.parametrize("preset", PRESETS)
def test_numbers_are_finite(preset):
    for quantity in computed(preset):
        if isinstance(quantity.value, (int, float, np.number)):
            assert np.isfinite(quantity.value), f"{quantity.name} = {quantity.value}"


# ---- provenance ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("preset", PRESETS)
def test_every_chain_ends_at_sources(preset):
    sources = load_facts().sources
    for quantity in computed(preset):
        leaves = [part for part in quantity.walk() if not part.inputs]
        assert quantity.kind == "derived" and quantity.inputs, f"{quantity.name} rests on nothing"
        for leaf in leaves:
            assert leaf.kind == "choice" or leaf.sources, f"{quantity.name} <- {leaf.name} has no source"
            assert set(leaf.sources) <= set(sources)
        assert quantity.all_sources() or any(leaf.kind == "choice" for leaf in leaves)


def test_a_chain_has_each_number_once_and_parents_first():
    chain = [part.name for part in catalogue.quantity("gross_margin").walk()]
    assert chain[0] == "gross_margin" and len(chain) == len(set(chain))
    assert {"gpu_cost", "price_hit", "prefill_throughput_new", "price.peak_factor"} <= set(chain)


def test_a_change_is_a_choice_and_the_rest_keeps_its_kind():
    quantity = catalogue.quantity("effective_input_price", changes={"h": 0.5})
    kinds = {part.name: part.kind for part in quantity.walk()}
    assert kinds == {"effective_input_price": "derived", "hit_rate": "choice", "price_hit": "reported", "price_miss": "reported"}
    assert quantity.value == pytest.approx(0.51)  # 0.5 * 0.02 + 0.5 * 1.00
    assert quantity.all_sources() == ("price-deepseek-cny",)


# ---- arrays ----------------------------------------------------------------------------------------------------------------

def around(name: str) -> np.ndarray:
    """Three values of a parameter, at and beside its default, within its bounds."""
    parameter = parameters()[name]
    values = np.clip(parameter.default * np.array([0.9, 1.0, 1.08]), *parameter.bounds)
    if name == "ep":
        return np.array([48, 64, 96])  # only divisors of the 384 experts exist
    if parameter.default == 0:
        values = np.array([0.0, 0.5, 1.0]) * parameter.bounds[1]
    return np.unique(np.round(values).astype(int)) if isinstance(parameter, FactInteger) else values


@pytest.mark.parametrize("name", [name for name, parameter in parameters().items() if not isinstance(parameter, FactChoice)])
def test_arrays_and_scalars_agree(name):
    """One call with an array gives what a call for each of its elements gives, for every number that depends on it."""
    depends = [node for node in NAMES if any(name in CATALOGUE[part].inputs.values() for part in order_of(node))]
    if not depends:
        pytest.skip("no derived number uses it yet")
    given, values = quantities(make_scenario()), around(name)
    together = resolve(depends, given | {name: replace(given[name], value=values)})
    each = [resolve(depends, given | {name: replace(given[name], value=value.item())}) for value in values]
    wrong = []
    for node in depends:
        if isinstance(together[node].value, Mapping):  # inputs that are handed on as they are
            continue
        one_by_one = np.array([found[node].value for found in each])
        if one_by_one.dtype.kind in "US":
            same = np.array_equal(np.broadcast_to(together[node].value, one_by_one.shape), one_by_one)
        else:
            same = np.allclose(together[node].value, one_by_one, rtol=1e-12, atol=0)
        if not same:
            wrong.append(f"{node}: {together[node].value} together, {one_by_one.tolist()} one by one")
    assert not wrong, "\n".join(wrong)


def test_arrays_of_two_parameters_make_a_grid():
    grid = catalogue.value("effective_input_price", hit_rate=np.array([[0.8], [0.96]]), price_hit=np.array([0.02, 0.1, 0.2]))
    assert grid.shape == (2, 3) and grid[1, 0] == pytest.approx(0.0592)  # claim price.effective_96


# ---- errors ----------------------------------------------------------------------------------------------------------------

@pytest.fixture
def scratch(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr("inside_deepinfer.facts.derive.CATALOGUE", dict(CATALOGUE))
    order_of.cache_clear()
    yield
    order_of.cache_clear()


def test_a_cycle_is_an_error_that_names_it(scratch):
    derived(label="first", unit="ratio", formula="x", name="first_of_two", uses={"x": "second_of_two"})(lambda x: x)
    derived(label="second", unit="ratio", formula="x", name="second_of_two", uses={"x": "first_of_two"})(lambda x: x + 1)
    with pytest.raises(UserError, match="depend on each other: .*first_of_two"):
        resolve(["first_of_two"], {})


def test_a_number_that_needs_itself(scratch):
    derived(label="itself", unit="ratio", formula="x", name="itself", uses={"x": "itself"})(lambda x: x)
    with pytest.raises(UserError, match="depend on each other: itself -> itself"):
        resolve(["itself"], {})


def test_an_unknown_input_is_an_error_that_names_it(scratch):
    derived(label="lost", unit="ratio", formula="x", name="lost", uses={"x": "no.such.fact"})(lambda x: x)
    with pytest.raises(UserError, match="no fact or derived number is called 'no.such.fact'"):
        resolve(["lost"], {})


def test_an_unknown_name_is_an_error_with_near_names():
    with pytest.raises(UserError, match="no derived number is called 'gross_margn'; close: gross_margin"):
        catalogue.quantity("gross_margn")
    with pytest.raises(UserError, match="no fact or derived number is called 'no.such'"):
        catalogue.quantity("no.such")
    with pytest.raises(UserError, match="parameter = 'nonsense' is not possible"):
        catalogue.quantity("gross_margin", changes={"nonsense": 1})


def test_a_name_cannot_be_taken_twice(scratch):
    with pytest.raises(ValueError, match="defined twice"):
        derived(label="other", unit="ratio", formula="x", name="gross_margin")(lambda x: x)


def test_uses_must_name_a_parameter(scratch):
    with pytest.raises(ValueError, match="uses names no parameter: y"):
        derived(label="odd", unit="ratio", formula="x", name="odd", uses={"y": "hit_rate"})(lambda x: x)


def test_facts_and_parameters_can_be_asked_for_too():
    found = catalogue.evaluate(["fleet.revenue_per_gpu_hour", "hit_rate"])
    assert (found["fleet.revenue_per_gpu_hour"].value, found["hit_rate"].value) == (38, 0.96)  # articles 000 and 004
    assert found["hit_rate"].sources == ("article-000", "article-004")
