"""Prefill and decode for a scenario: balance in closed form and simulated, the command, the figures of chapter 12."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from inside_deepinfer import catalogue
from inside_deepinfer.cli import app
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.figures import queues
from inside_deepinfer.figures.drawing import draw
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.serving import queueing
from inside_deepinfer.serving.pd_balance import pool_use
from inside_deepinfer.serving.pd_simulation import simulate
from inside_deepinfer.studies import pd

SCENARIO = make_scenario()
runner = CliRunner()


def call(*arguments: str, **more: str):
    return runner.invoke(app, ["simulate", *arguments], **more)


# ---- closed form ----------------------------------------------------------------------------------------------------------

@given(ratio=st.floats(0.05, 20), right=st.floats(0.05, 20))
def test_a_ratio_uses_all_cards_only_where_it_is_right(ratio, right):
    use = float(pool_use(ratio, right))
    assert 0 < use <= 1 + 1e-12 and (use < 1 or ratio == pytest.approx(right, rel=1e-6))
    assert float(pool_use(right, right)) == pytest.approx(1)


def test_published_balance():
    """1.5M cached tokens a second per prefill GPU and 14,000 per decode GPU balance 107.14 input tokens per output token at 1:1."""
    assert catalogue.value("balanced_pd_ratio") == pytest.approx(1.0)
    assert catalogue.value("prefill_gpus_beside_instance") == 64  # claim fleet.minimum_unit


def test_limits_are_the_throughputs_of_the_scenario():
    cluster = replace(pd.cluster_of(SCENARIO, "published", 3, 5), read_rate=1e18)
    most = pd.limits(SCENARIO, cluster)
    new = SCENARIO.input_tokens * (1 - SCENARIO.hit_rate)
    assert most.prefill == pytest.approx(3 * SCENARIO.prefill_throughput_new / new)
    assert most.decode == pytest.approx(5 * SCENARIO.decode_throughput / catalogue.value("output_tokens_per_request"))
    assert cluster.decode_capacity() == pytest.approx(5 * SCENARIO.decode_throughput)


def test_hidden_cpu_work_gains_its_share_of_the_step():
    gain = catalogue.value("gain_of_hidden_cpu", step_time=np.array([0.001, 0.004, 0.016]))
    assert gain == pytest.approx([1.25, 2.0, 1.25])  # 4 ms of CPU work (fact pd.cpu_time): 5/4, 8/4, 20/16


# ---- simulation -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("changes", [{}, {"h": 0.9}, {"io": 30}, {"h": 0.8, "io": 300}], ids=str)
def test_simulated_balance_is_near_the_closed_form(changes):
    """The simulation also reads the cache on the prefill GPU (up to 3 % here) and wastes parts of the last step."""
    scenario = make_scenario("published", changes)
    right = float(catalogue.value("balanced_pd_ratio", scenario))
    assert pd.simulated_balance(scenario, "published") == pytest.approx(right, rel=0.07)


def test_a_line_of_equal_prompts_waits_as_the_closed_form_says():
    work, found = pd.prompt_line(SCENARIO, "published", (0.5,), 6000, seed=3)
    load, mean, error = found[0]
    assert abs(mean - float(queueing.mean_wait(load / work, work, 0.0))) < 3 * error


def test_apart_has_shorter_gaps_and_together_shares_its_cards():
    runs = pd.runs(SCENARIO, "published", 0.5, 150)
    gaps = {name: np.quantile(seen.worst_gap, 0.9) for name, seen in runs.items()}
    assert gaps["apart"] < gaps["apart, CPU work not hidden"] < gaps["together"]
    assert all(np.all(seen.finish > 0) and len(seen.finish) == 135 for seen in runs.values())  # the first tenth is not counted


def test_the_published_gaps_and_first_tokens():
    """Our runs of 2026-11-30, 2,000 requests at 70 %: medians and means in ms; first tokens do not grow with the count."""
    runs = pd.runs(SCENARIO, "published", 0.7, 2000)
    found = {name: (1e3 * np.median(seen.worst_gap), 1e3 * seen.ttft.mean()) for name, seen in runs.items()}
    assert found["apart"] == pytest.approx((19.5, 84.9), rel=0.02)
    assert found["together"] == pytest.approx((105.4, 16.3), rel=0.02)
    more = pd.runs(SCENARIO, "published", 0.7, 6000)["together"].ttft
    assert 1e3 * more.mean() == pytest.approx(16, rel=0.1)


def test_a_way_that_would_be_overloaded_is_left_out():
    """4 ms more in a step of about 15.5 ms with full slots: 0.8 of the load becomes 0.8 * 77.9 / 60.4 * 76.0 / 77.9 = 1.007."""
    assert set(pd.runs(SCENARIO, "published", 0.8, 1000)) == {"apart", "together"}
    assert set(pd.runs(SCENARIO, "published", 0.79, 1000)) == {"apart", "apart, CPU work not hidden", "together"}


def test_together_is_stable_where_its_closed_form_says_so():
    cluster = replace(pd.cluster_of(SCENARIO, "published", 4, 4), prefill_gpus=1, decode_gpus=8, ranks=8, together=True)
    for load, most in ((0.8, 0.02), (0.95, 0.025)):  # seconds; served one prompt a step, this line grew without end
        seen = simulate(cluster, pd.traffic(SCENARIO, cluster, load, 3000))
        first, last = (part.mean() for part in np.array_split(seen.ttft, 3)[::2])
        assert seen.ttft.mean() < most and last < 1.3 * first


def test_the_same_seed_gives_the_same_outcome():
    cluster = pd.cluster_of(SCENARIO, "published", 2, 2)
    one, other = (simulate(cluster, pd.traffic(SCENARIO, cluster, 0.5, 80, seed=4)) for _ in range(2))
    assert np.array_equal(one.ttft, other.ttft)


@pytest.mark.parametrize(("error", "match", "run"), [
    (NotPossible, "output tokens", lambda: pd.traffic(make_scenario("published", {"L": 256, "io": 2000}),
                                                      pd.cluster_of(SCENARIO, "published", 1, 1), 0.5, 10)),
    (InputError, "load", lambda: pd.traffic(SCENARIO, pd.cluster_of(SCENARIO, "published", 1, 1), 0.0, 10)),
    (InputError, "ranks", lambda: pd.cluster_of(SCENARIO, "published", 1, 4, ranks=3)),
    (InputError, "ranks", lambda: pd.cluster_of(SCENARIO, "published", 1, 4, ranks=0)),
    (InputError, "seed", lambda: pd.traffic(SCENARIO, pd.cluster_of(SCENARIO, "published", 1, 1), 0.5, 10, seed=-1)),
    (InputError, "dropped", lambda: pd.runs(SCENARIO, "published", 0.3, 60)["apart"].later(1.0)),
    (InputError, "low, high", lambda: simulate(pd.cluster_of(SCENARIO, "published", 1, 1), pd.all_at_once(pd.traffic(
        SCENARIO, pd.cluster_of(SCENARIO, "published", 1, 1), 0.5, 10))).steady_rate(0.6, 0.1)),
])
def test_bad_input_names_the_parameter(error, match, run):
    with pytest.raises(error, match=match):
        run()


# ---- command --------------------------------------------------------------------------------------------------------------

def test_the_command_says_how_long_and_prints_times():
    done = call("--requests", "80")
    assert done.exit_code == 0 and "expected: about" in done.stderr
    assert "time to first token" in done.stdout and "requests per second" in done.stdout


def test_the_command_prints_pure_json():
    done = call("--requests", "60", "--together", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["requests"] == 60 and found["together"] and set(found["seconds"]) == {"wait", "ttft", "time_per_token", "longest_gap"}


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0)])
def test_a_run_above_the_budget_asks_first(answer, code):
    done = call("--requests", "60", "--budget", "0.001", input=answer)
    assert done.exit_code == code and "more than the budget of 0.001 s" in done.stderr
    assert ("not run" in done.stderr) == bool(code)


def test_yes_does_not_ask():
    assert "budget" not in call("--requests", "60", "--budget", "0.001", "--yes").stderr


@pytest.mark.parametrize(("match", "arguments"), [
    ("the queue is unstable", ["--load", "1"]), ("load", ["--load", "-1"]), ("requests", ["--requests", "0"]),
    ("ranks", ["--ranks", "3"]), ("input_output_ratio", ["--set", "io=abc"]), ("budget", ["--budget", "0"]),
    ("prefill-gpus", ["--prefill-gpus", "0"]), ("seed", ["--seed", "-1"]), ("ranks", ["--ranks", "0"]),
    ("ranks", ["--ranks", "0", "--together"])])
def test_what_cannot_be_simulated_is_one_line(match, arguments):
    done = call(*arguments)
    assert done.exit_code == 2 and done.stdout == ""
    assert match in done.stderr.splitlines()[-1] and done.stderr.splitlines()[-1].startswith("error: ")


# ---- figures --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("changes", [{}, {"h": 0.0, "io": 0.1}, {"h": 0.995, "io": 2000, "pd": 20}], ids=str)
def test_the_balance_figure_stands_for_any_scenario(changes):
    scenario = make_scenario("published", changes)
    meta = queues.balance(scenario).layout.meta
    assert meta["alt"].endswith(".") and "nan" not in meta["alt"] and set(meta["sources"]) <= set(load_facts().sources)
    assert draw(queues.balance, scenario)["layout"]["meta"]["alt"] == meta["alt"]


def test_movable_and_waiting_figures():
    use = queues.use_by_hit_rate(SCENARIO)
    assert len(use.frames) == 8 and "96 % hits 1:1 keeps all cards busy at about 107" in use.layout.meta["alt"]
    # 107.14 * 0.04 input per output where everything is computed
    assert "At 0 % hits 1:1 keeps all cards busy at about 4.3 " in use.frames[0].layout.meta["alt"]
    runs = {load: pd.runs(SCENARIO, "published", load, 60) for load in (0.3, 0.5)}
    assert len(queues.times(runs, 0.5).frames) == 2
    runs[0.8] = {name: seen for name, seen in runs[0.5].items() if name != "apart, CPU work not hidden"}
    frames = queues.times(runs, 0.5).frames
    assert [("left out" in frame.layout.meta["alt"]) for frame in frames] == [False, False, True]
    assert "has no end at 1" in queues.waiting(0.05, [(0.5, 0.025, 0.001)]).layout.meta["alt"]
