"""The audit: every verdict follows from the rules, and changes when the data do."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from inside_deepinfer.audit import RULES, as_record, audit, audit_claim, finding
from inside_deepinfer.audit.rules import compare, verdict
from inside_deepinfer.facts import UserError, load_facts
from inside_deepinfer.facts.records import Claim

SHARED_ROWS = 107  # rows of the list of claims that the audit started from


def claim(**fields) -> Claim:
    """A hand-made claim; only what a test is about is given."""
    base = dict(id="made.up", articles=["000"], kind="estimate", statement="made up", expected_verdict="reproduced", chapter="one-day")
    return Claim.model_validate(base | fields)


def check(route="own_inputs", **fields) -> dict:
    return dict(computes=["tokens_per_second"], route=route, expected=[1.79398e9]) | fields


@pytest.fixture(scope="module")
def rows() -> dict[str, dict]:
    return {found.id: as_record(found) for found in audit()}


# ---- the table as a whole ---------------------------------------------------------------------------------------------------


def test_every_row_has_the_recorded_verdict_and_no_problem(rows):
    assert len(rows) >= SHARED_ROWS
    wrong = {name: (row["verdict"], row["expected_verdict"], row["problems"]) for name, row in rows.items()
             if row["verdict"] != row["expected_verdict"] or row["problems"]}
    assert not wrong


def test_every_row_can_be_read_by_a_machine(rows):
    text = json.dumps(list(rows.values()), allow_nan=False)
    assert len(json.loads(text)) == len(rows)
    for row in rows.values():
        assert row["sources"] and row["rule"] and row["statement"]
        assert set(row["sources"]) <= set(load_facts().sources)


def test_every_conflict_names_its_evidence(rows):
    conflicts = [row for row in rows.values() if row["verdict"] == "conflict"]
    assert len(conflicts) == 12
    for row in conflicts:
        assert any(item["says"] == "contradicts" and item["sources"] and item["text"] for item in row["evidence"]), row["id"]


def test_the_counts_of_verdicts_are_those_of_the_sound_audit(rows):
    count = Counter(row["verdict"] for row in rows.values())
    assert count == {"reproduced": 33, "consistent": 30, "conflict": 12, "identity": 2, "unverifiable": 31}


def test_who_says_a_claim_is_its_kind_unless_the_row_says_otherwise(rows):
    named = {name: row["said_by"] for name, row in rows.items() if load_facts().claims[name].said_by}
    assert named == {"fleet.revenue_theory_usd": "us", "hbm.weights_full": "us", "storage.closure": "us",
                     "decode.routed_experts": "author", "engine.ascend_same": "author", "engine.env_names": "author",
                     "replay.tokens_000": "author", "replay.tokens_004": "author"}
    for name, row in rows.items():
        if name not in named:
            assert row["said_by"] == ("deepseek" if row["kind"] in ("reported", "design") else "author"), name


def test_shares_of_the_two_conclusions_by_hand(rows):
    """23 of the authors' 27 sums come out, 21 without the two at the inferred exchange rate; 25 of DeepSeek's 40 reports stay open."""
    own = [row["verdict"] for row in rows.values() if (row["kind"], row["said_by"]) == ("estimate", "author")]
    assert (len(own), own.count("reproduced")) == (27, 23)
    inferred = [found.id for found in audit() if found.verdict == "reproduced"
                and any(part.name == "cny_per_usd" for computed in found.computed for part in computed.walk())]
    assert inferred == ["fleet.revenue_theory", "fleet.revenue_gap"]
    reported = [row["verdict"] for row in rows.values() if (row["kind"], row["said_by"]) == ("reported", "deepseek")]
    assert (len(reported), reported.count("unverifiable")) == (40, 25)


def test_arithmetic_is_checked_by_a_function_and_a_bare_row_is_unverifiable(rows):
    for found in audit():
        bare = found.claim.check is None and not found.claim.evidence
        assert bare == (found.verdict == "unverifiable"), found.id


@pytest.mark.parametrize(("name", "value", "places"), [
    ("fleet.revenue_theory", 36.71, 2),  # article 004 prints 36.7
    ("fleet.revenue_theory_usd", 39.10, 2),  # the same on the dollar list
    ("fleet.prefill_gpus", 1196, 0),
    ("fleet.total_gpus", 2392, 0),
    ("fleet.gpus_from_storage", 7819, 0),
    ("price.effective_96", 0.0592, 4),
    ("price.effective_80", 0.216, 3),
    ("price.balance", 0.48, 2),
    ("price.jump", 3.65, 2),
    ("fleet.network", 167, 0),
    ("decode.step_time", 13.31e-3, 5),
    ("decode.compute_verified", 3.58, 2),
    ("storage.servers_raw", 183.2, 1),
    ("storage.servers_ec", 219.8, 1),
    ("cache.swa_state", 1_415_040, 0),
    ("decode.routed_experts", 384, 0),
    ("replay.exact_cost", 2540, 0),
])
def test_published_values_come_out(rows, name, value, places):
    assert round(rows[name]["computed"], places) == value


def test_values_of_rows_with_several_numbers(rows):
    assert rows["api.inject_user"]["computed"] == [5, 9] and rows["api.inject_tool"]["computed"] == [13, 17]
    assert rows["decode.utilisation"]["computed"] == pytest.approx([0.051, 0.115], abs=5e-4)
    assert rows["prefill.ep_range"]["computed"] == pytest.approx([158.6e9, 87.8e9, 50.8e9], rel=1e-3)
    assert rows["replay.halves_prefill"]["computed"] == pytest.approx([0.508, 0.526], abs=5e-4)
    assert rows["storage.closure"]["computed"] == pytest.approx([6.7e15, 20e15, 47e15], rel=0.02)
    assert rows["spec.user_speedup"]["computed"] == pytest.approx([0.60, 0.85], abs=5e-3)


def test_the_balance_point_stands_beside_the_balance(rows):
    shown = {item["name"]: item["value"] for item in rows["price.balance"]["shown"]}
    assert shown["balancing_hit_rate"] == pytest.approx(50 / 51)
    assert round(100 * shown["balancing_hit_rate"], 2) == 98.04


def test_marked_points_of_figure_7_lie_on_the_digitised_curves():
    """The four speeds behind spec.user_speedup, against the table read from the same figure."""
    import numpy as np

    table = load_facts().points("dspark-fig7-pareto").query("model == 'V4-Flash-preview'")

    def speed(spec: str, throughput: float) -> float:
        curve = table[table["spec"] == spec].sort_values("tok_s_gpu")
        return float(np.interp(throughput, curve["tok_s_gpu"], curve["tok_s_user"]))

    facts = load_facts()
    for point, throughput in (("low", 10_612), ("high", 1_515)):
        assert speed("MTP-1", throughput) == pytest.approx(facts.number(f"dspark.fig7.user_speed_mtp1_{point}"), rel=5e-3)
        assert speed("DSpark-5", throughput) == pytest.approx(facts.number(f"dspark.fig7.user_speed_dspark_{point}"), rel=5e-3)


# ---- the rules, one by one ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("about", "computed", "expected"), [
    (False, 12.05, "reproduced"), (False, 12.0500001, "conflict"), (False, 11.95, "reproduced"),
    (True, 12.1, "reproduced"), (True, 12.11, "conflict"), (True, 11.9, "reproduced"),
])
def test_own_inputs_must_round_to_the_printed_value(about, computed, expected):
    row = claim(value=12.0, printed_step=0.1, about=about, check=check())
    assert verdict(row, compare(row, row.check, [computed], [12.0]))[0] == expected


@pytest.mark.parametrize(("computed", "expected"), [(105.0, "consistent"), (95.0, "consistent"), (105.1, "conflict")])
def test_second_route_must_land_within_the_tolerance(computed, expected):
    row = claim(value=100.0, check=check("second_route", tolerance=0.05))
    assert verdict(row, compare(row, row.check, [computed], [100.0]))[0] == expected


@pytest.mark.parametrize(("relation", "computed", "expected"), [
    ("at_least", 100.0, "consistent"), ("at_least", 99.9, "conflict"), ("at_most", 100.0, "consistent"), ("at_most", 100.1, "conflict"),
])
def test_bounds(relation, computed, expected):
    row = claim(value=100.0, check=check("second_route", relation=relation))
    assert verdict(row, compare(row, row.check, [computed], [100.0]))[0] == expected


@pytest.mark.parametrize(("computed", "expected"), [(4.2, "consistent"), (5.4, "consistent"), (4.1, "conflict")])
def test_within(computed, expected):
    row = claim(check=check("second_route", relation="within", within=[4.2, 5.4]))
    assert verdict(row, compare(row, row.check, [computed], []))[0] == expected


def test_by_construction_is_an_identity_only_where_equal():
    row = claim(value=25.0, check=check("by_construction"))
    assert verdict(row, compare(row, row.check, [25 * (1 + 1e-12)], [25.0]))[0] == "identity"
    assert verdict(row, compare(row, row.check, [25.001], [25.0]))[0] == "conflict"


def test_one_failing_number_of_several_is_a_conflict():
    row = claim(value=[1.0, 2.0], printed_step=[0.1, 0.01], check=check(computes=["a", "b"], expected=[1, 2]))
    assert verdict(row, compare(row, row.check, [1.04, 2.004], [1.0, 2.0]))[0] == "reproduced"
    assert verdict(row, compare(row, row.check, [1.04, 2.04], [1.0, 2.0]))[0] == "conflict"
    with pytest.raises(UserError, match="cannot be held against"):
        compare(row, row.check, [1.0, 2.0], [1.0, 2.0, 3.0])


SUPPORT = dict(source="deepinfer-sdist", says="supports", text="does so")
AGAINST = dict(source="v41-config", says="contradicts", text="says otherwise")
RERUN = dict(source="recipe-runs", says="supports", by="rerun", text="did so again")


@pytest.mark.parametrize(("evidence", "expected"), [
    ([], "unverifiable"), ([SUPPORT], "consistent"), ([RERUN], "reproduced"), ([SUPPORT, RERUN], "reproduced"),
    ([AGAINST], "conflict"), ([SUPPORT, RERUN, AGAINST], "conflict"),
])
def test_documents(evidence, expected):
    assert verdict(claim(evidence=evidence), ())[0] == expected


def test_a_document_against_outweighs_arithmetic_and_one_for_adds_nothing():
    row = claim(value=12.0, printed_step=0.1, check=check(), evidence=[AGAINST])
    holds = compare(row, row.check, [12.0], [12.0])
    word, rule = verdict(row, holds)
    assert (word, "v41-config" in rule) == ("conflict", True)
    row = claim(value=12.0, check=check("second_route", tolerance=0.1), evidence=[RERUN])
    assert verdict(row, holds)[0] == "consistent"


def test_the_recorded_verdict_decides_nothing():
    row = claim(value=1.79e9, unit="token/s", printed_step=1e7, expected_verdict="conflict", check=check())
    found = audit_claim(row)
    assert (found.verdict, found.changed) == ("reproduced", True)


def test_drift_from_the_recorded_value_is_a_problem():
    found = audit_claim(claim(value=1.79e9, unit="token/s", printed_step=1e7, check=check(expected=[1.80e9])))
    assert found.verdict == "reproduced" and found.changed and "was recorded" in found.problems[0]


def test_a_conflict_without_named_evidence_is_a_problem():
    """A number computed from choices alone rests on no source, so its disagreement names nothing."""
    lone = dict(computes=["usd_per_unit"], route="second_route", tolerance=0.01, expected=[1.0], set={"currency": "USD", "cny_per_usd": 5})
    found = audit_claim(claim(value=3.0, unit="USD", check=lone))
    assert found.verdict == "conflict" and any("without named evidence" in problem for problem in found.problems)
    assert not audit_claim(claim(value=3.0, unit="USD", check=lone, evidence=[AGAINST])).problems


def test_units_are_compared_up_to_a_decimal_prefix():
    wanted = check("second_route", computes=["kv_bytes_per_request"], tolerance=0.01, expected=[68.53])
    assert audit_claim(claim(value=68.5, unit="MB", check=wanted)).verdict == "consistent"
    with pytest.raises(UserError, match="cannot be compared"):
        audit_claim(claim(value=68.5, unit="token", check=wanted))


def test_prices_carry_the_currency_of_the_scenario():
    wanted = check(computes=["effective_input_price"], expected=[0.00888], preset="off-peak")
    assert audit_claim(claim(value=0.009, unit="USD/Mtoken", printed_step=0.001, check=wanted)).verdict == "reproduced"
    with pytest.raises(UserError, match="cannot be compared"):
        audit_claim(claim(value=0.009, unit="CNY/Mtoken", printed_step=0.001, check=wanted))


def test_unknown_claim_names_close_ones():
    with pytest.raises(UserError, match="no claim is called 'price.balanse'; close: price.balance"):
        finding("price.balanse")


def test_rules_name_every_verdict():
    for word in ("reproduced", "consistent", "conflict", "identity", "unverifiable"):
        assert word in RULES


# ---- changed data flip verdicts -------------------------------------------------------------------------------------------------


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"INSIDE_DEEPINFER_DATA": str(folder)}
    return subprocess.run([sys.executable, "-m", "inside_deepinfer", *arguments], env=environment, capture_output=True, text=True,
                          timeout=120, check=False)


def test_a_changed_price_flips_verdicts_and_ends_with_code_1(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(load_facts().folder, data)
    prices = data / "facts" / "prices.yaml"
    text = prices.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "id: price.v41.cny.hit," in line)
    prices.write_text(text.replace(line, line.replace("value: 0.02", "value: 0.05")), encoding="utf-8")
    done = run(data, "audit", "--json")
    assert done.returncode == 1
    found = {row["id"]: row for row in json.loads(done.stdout)}
    assert found["price.ratio"]["verdict"] == "conflict" and found["price.hit"]["verdict"] == "conflict"
    assert found["price.ratio"]["computed"] == pytest.approx(20)
    assert found["decode.step_time"]["verdict"] == "reproduced"
    assert "changed: price.ratio is conflict instead of reproduced" in done.stderr


def test_a_changed_recorded_verdict_ends_with_code_1(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(load_facts().folder, data)
    rows = data / "claims.yaml"
    before, row, after = rows.read_text(encoding="utf-8").partition("- id: prefill.throughput_cached\n")
    after = after.replace("expected_verdict: identity", "expected_verdict: reproduced", 1)
    rows.write_text(before + row + after, encoding="utf-8")
    done = run(data, "audit", "prefill.throughput_cached")
    assert done.returncode == 1 and "identity instead of reproduced" in done.stderr
    assert run(data, "audit", "prefill.cache_speedup").returncode == 0


def test_damaged_data_are_one_line(tmp_path):
    data = tmp_path / "data"
    shutil.copytree(load_facts().folder, data)
    rows = data / "claims.yaml"
    rows.write_text(rows.read_text(encoding="utf-8").replace("articles: [\"004\"]", "articles: []", 1), encoding="utf-8")
    done = run(data, "audit")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("\n") == 1 and "claims.yaml" in done.stderr and "articles" in done.stderr
    rows.unlink()
    done = run(data, "value", "tokens_per_second")
    assert done.returncode == 2 and done.stderr == "error: claims.yaml: the file is missing\n"
