"""The command line: pure JSON, one clear line for every wrong input, quick to start."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from inside_deepinfer import catalogue
from inside_deepinfer.cli import COMMANDS, app
from inside_deepinfer.commands import chain
from inside_deepinfer.facts import load_facts

runner = CliRunner()


def call(*arguments: str):
    return runner.invoke(app, list(arguments))


def as_json(*arguments: str):
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


# ---- audit ------------------------------------------------------------------------------------------------------------------


def test_audit_prints_every_claim_and_the_counts():
    done = call("audit")
    assert done.exit_code == 0
    for name in load_facts().claims:
        assert f"\n{name} " in done.stdout
    for text in ("5 control token / 9 control token", "36.71", "39.1 ", "1,196 GPU", "2,392 GPU", "7,819 GPU", "0.0592", "0.216"):
        assert text in done.stdout
    assert f"{len(load_facts().claims)} claims: " in done.stdout


def test_audit_json_has_the_agreed_fields():
    rows = as_json("audit", "--json")
    assert len(rows) >= 107
    wanted = {"id", "verdict", "expected_verdict", "value", "computed", "unit", "sources", "statement", "kind", "articles",
              "computed_unit", "rule", "evidence"}
    for row in rows:
        assert wanted <= set(row)
        assert row["verdict"] in {"reproduced", "consistent", "conflict", "identity", "unverifiable"}


def test_audit_of_one_claim_shows_the_chain_down_to_its_sources():
    done = call("audit", "price.balance")
    assert done.exit_code == 0
    for text in ("hit_rate * price_hit / ((1 - hit_rate) * price_miss)", "0.96 * 0.02 / ((1 - 0.96) * 1)", "0.48", "98.04 %",
                 "conflict", "price-deepseek-cny", "https://api-docs.deepseek.com"):
        assert text in done.stdout, text
    (row,) = as_json("audit", "price.balance", "--json")
    assert row["id"] == "price.balance" and row["computed"] == pytest.approx(0.48)


@pytest.mark.parametrize("name", list(load_facts().claims))
def test_every_claim_has_a_chain(name):
    done = call("audit", name)
    assert done.exit_code == 0 and done.stdout.startswith(f"{name}: ") and "\nsources\n" in done.stdout


def test_audit_prints_its_rules():
    assert "half a printed step" in call("audit", "--rules").stdout


# ---- value ------------------------------------------------------------------------------------------------------------------


def test_value_json_carries_formula_inputs_and_sources():
    found = as_json("value", "revenue_per_cluster_gpu_hour", "--json")
    assert {"name", "value", "unit", "inputs", "sources", "formula"} <= set(found)
    assert found["name"] == "revenue_per_cluster_gpu_hour" and found["unit"] == "USD/(GPU*h)"
    assert round(found["value"], 2) == 36.71
    assert [part["name"] for part in found["inputs"]] == ["pd_ratio", "revenue_per_prefill_gpu_hour", "revenue_per_decode_gpu_hour"]
    assert all({"name", "value", "unit", "kind"} <= set(part) for part in found["inputs"])
    assert "price-deepseek-cny" in found["sources"] and set(found["sources"]) <= set(load_facts().sources)


def test_every_derived_number_can_be_printed_as_json_and_as_text():
    quick = [name for name, entry in catalogue.names().items() if ".tokens." not in entry.function.__module__]  # no experiments
    for name, found in catalogue.evaluate(quick).items():
        assert json.loads(json.dumps(chain.as_data(found), allow_nan=False))["name"] == name
        assert next(chain.lines(found)).startswith(f"{name} = ")


def test_value_follows_preset_and_changes():
    assert round(as_json("value", "revenue_per_cluster_gpu_hour", "--preset", "off-peak", "--json")["value"], 1) == 39.1
    assert as_json("value", "effective_input_price", "--set", "h=0.8", "--json")["value"] == pytest.approx(0.216)
    changed = as_json("value", "effective_input_price", "--set", "hit_rate=0.8", "--set", "price_hit=0.1", "--json")
    assert changed["value"] == pytest.approx(0.28)
    assert {part["name"]: part["kind"] for part in changed["inputs"]}["price_hit"] == "choice"


def test_value_prints_parameters_facts_and_claims_too():
    assert as_json("value", "hit_rate", "--json")["value"] == 0.96
    assert as_json("value", "storage.drive_bytes", "--json")["value"] == 30.73e12
    assert as_json("value", "decode.benchmark", "--json")["value"] == 14466


@pytest.mark.parametrize(("name", "change", "reason"), [
    ("counted_step_time", ("c=h100", "ep=2"), "what DeepSeek-V4.1-Flash keeps on every GPU is 166.4 GB"),
    ("throughput_per_decode_gpu", ("b=4000",), "at most 1,981 sequences per GPU fit"),
    ("hbm_share", ("st=0.001",), "reading the weights at peak bandwidth takes 1.83 ms"),
    ("card_domain", ("c=ascend-950pr",), "size of the scale-up domain")])
def test_value_says_why_a_number_cannot_be(name, change, reason):
    """What keeps 158.6 GB of weights on a card of 80 GiB, or reads 14.67 GB in a millisecond, is no number."""
    found = call("value", name, *(part for text in change for part in ("--set", text)))
    assert found.exit_code == 2 and reason in found.stderr and not found.stdout.strip()
    assert name == "card_domain" or f"{name} is not possible in this scenario, because" in found.stderr


def test_value_says_what_the_card_lacks():
    """FP4 on an H200: the step is counted with wider numbers, and said to be."""
    said = as_json("value", "counted_step_time", "--set", "card=h200", "--json")["notices"]
    assert len(said) == 1 and said[0].startswith("H200 SXM has no FP4 units")
    assert f"notice: {said[0]}" in call("value", "counted_step_time", "--set", "card=h200").stdout.splitlines()
    for name, card in (("counted_step_time", "b200"), ("hbm_read_bytes_per_step", "h200")):
        assert as_json("value", name, "--set", f"card={card}", "--json")["notices"] == []


def test_value_lists_every_name_with_unit_and_meaning():
    rows = as_json("value", "--list", "--json")
    assert [row["name"] for row in rows] == list(catalogue.names())
    assert all(row["label"] and isinstance(row["unit"], str) for row in rows)
    assert "revenue_per_cluster_gpu_hour" in call("value", "--list").stdout


def test_the_same_number_as_the_package():
    for name in ("cluster_gpus_from_throughput", "effective_input_price", "store_servers"):
        assert as_json("value", name, "--json")["value"] == catalogue.value(name)


# ---- wrong input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "says"), [
    (["audit", "nope"], "no claim is called 'nope'"),
    (["audit", "price.balanse"], "close: price.balance"),
    (["audit", "price.balance\n\x1b[31m"], "no claim is called"),
    (["value", "tokens_per_secnd"], "close: tokens_per_second"),
    (["value", "price.nope"], "'price.nope'"),
    (["value"], "--list"),
    (["value", "effective_input_price", "--set", "hit_rate=1.5"], "hit_rate = '1.5'"),
    (["value", "effective_input_price", "--set", "h=nan"], "hit_rate = 'nan'"),
    (["value", "effective_input_price", "--set", "price_hit=-0.02"], "price_hit = '-0.02'"),
    (["value", "effective_input_price", "--set", "price_hit="], "price_hit= has no value"),
    (["value", "effective_input_price", "--set", "price_hit"], "is not KEY=VALUE"),
    (["value", "effective_input_price", "--set", "price_hit=cheap"], "price_hit = 'cheap'"),
    (["value", "effective_input_price", "--set", "colour=red"], "'colour'"),
    (["value", "effective_input_price", "--set", "h=0.8", "--set", "hit_rate=0.9"], "hit_rate twice"),
    (["value", "revenue_per_cluster_gpu_hour", "--set", "currency=EUR"], "CNY or USD"),
    (["value", "weight_bytes_per_gpu", "--set", "ep=0"], "ep = '0'"),
    (["value", "weight_bytes_per_gpu", "--set", "ep=2.5"], "a whole number"),
    (["value", "cluster_gpus_from_throughput", "--set", "pd=0"], "pd_ratio = '0'"),
    (["value", "tokens_per_second", "--preset", "nope"], "preset = 'nope'"),
    (["value", "tokens_per_second", "--set", "T=0"], "tokens_per_day = '0'"),
    (["nonsense"], "no command is called 'nonsense'"),
    (["adit"], "did you mean audit?"),
    (["serve", "--port", "99999"], "port = 99999"),
])
def test_wrong_input_is_one_clear_line(arguments, says):
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_option_ends_with_code_2_and_no_traceback():
    done = call("audit", "--nope")
    assert done.exit_code == 2 and "No such option: --nope" in done.stderr and "Traceback" not in done.stderr


# ---- the commands themselves ------------------------------------------------------------------------------------------------


def test_help_names_every_command():
    done = call("--help")
    assert done.exit_code == 0
    for name, (_, line) in COMMANDS.items():
        assert f"\n  {name} " in done.stdout and line.split()[0] in done.stdout


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_loads_and_explains_itself(name):
    done = call(name, "--help")
    assert done.exit_code == 0 and "Usage: " in done.stdout


def test_audit_and_value_start_without_the_heavy_libraries():
    code = ("import sys; sys.argv = ['inside-deepinfer', *{!r}]\n"
            "from inside_deepinfer.cli import main\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code\n"
            "heavy = {{'plotly', 'panel', 'bokeh', 'sphinx', 'pandas', 'tornado', 'scipy'}} & set(sys.modules)\n"
            "assert not heavy, heavy")
    for arguments in (["audit"], ["value", "tokens_per_second", "--json"]):
        done = subprocess.run([sys.executable, "-c", code.format(arguments)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
