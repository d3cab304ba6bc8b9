"""Queues: closed forms against textbook values, and the simulation against the closed forms."""

import numpy as np
import pytest

from inside_deepinfer.facts import InputError, NotPossible
from inside_deepinfer.serving import queueing
from inside_deepinfer.serving.pd_simulation import Cluster, Requests, poisson_requests, simulate


def cluster(**changes) -> Cluster:
    values = dict(prefill_gpus=1, decode_gpus=1, ranks=1, slots=1000, prefill_rate=1e9, prefill_fixed=0.0, step_fixed=1e-6,
                  step_per_row=0.0, cpu_time=0.0, overlap=True, tokens_per_step=1e9, read_rate=1e18, transfer_rate=1e18, kv_bytes=0.0)
    return Cluster(**(values | changes))


def test_textbook_values():
    """M/M/1 at load 0.5 and service 1 s waits 1 s; M/D/1 waits half of it; Erlang C of 2 servers at load 0.5 is 1/3."""
    assert queueing.mean_wait(0.5, 1.0) == pytest.approx(1.0)
    assert queueing.mean_wait(0.5, 1.0, variation=0.0) == pytest.approx(0.5)
    assert queueing.wait_probability(2, 1.0, 1.0) == pytest.approx(1 / 3)
    assert queueing.wait_probability(1, 0.7, 1.0) == pytest.approx(0.7)
    assert queueing.wait_percentile(0.5, 1.0, 0.4) == 0


@pytest.mark.parametrize("call", [lambda: queueing.mean_wait(1.0, 1.0), lambda: queueing.mean_wait(np.array([0.1, 3.0]), 1.0)])
def test_at_or_beyond_saturation_there_is_no_finite_wait(call):
    with pytest.raises(NotPossible, match="unstable"):
        call()


@pytest.mark.parametrize(("variation", "draw"), [
    (1.0, lambda rng, n: rng.exponential(0.6, n)), (0.0, lambda rng, n: np.full(n, 0.6))])
def test_simulated_prefill_line_is_within_two_percent_of_the_closed_form(variation, draw):
    """At load 0.6, 60,000 requests keep the standard error of the mean wait near 1 %."""
    rng, n = np.random.default_rng(12), 60_000
    service = draw(rng, n)
    arrival = np.cumsum(rng.exponential(1.0, n))
    requests = Requests(arrival, inputs=service, cached=np.zeros(n), outputs=np.ones(n))
    seen = simulate(cluster(prefill_rate=1.0), requests, allow_long=True)
    exact = queueing.mean_wait(1.0, service.mean(), variation * service.var() / service.mean() ** 2 if variation else 0.0)
    assert seen.wait[n // 20:].mean() == pytest.approx(exact, rel=0.02)


def decode_case(**changes) -> Cluster:
    return cluster(**(dict(prefill_gpus=4, decode_gpus=4, ranks=4, slots=64, prefill_rate=60e3, step_fixed=9e-3,
                           step_per_row=0.07e-3, cpu_time=4e-3, tokens_per_step=3.2, read_rate=50e9, transfer_rate=50e9,
                           kv_bytes=890.0) | changes))


LOAD = poisson_requests(1500, rate=30.0, input_mean=20_000, hit_rate=0.9, output_mean=300, seed=4)


def test_everything_that_arrives_is_finished_and_times_are_ordered():
    shares = []
    seen = simulate(decode_case(), LOAD, progress=shares.append)
    assert len(seen.ttft) == 1500 and shares[-1] == 1.0
    assert np.all(seen.wait >= 0) and np.all(seen.ttft >= seen.wait) and np.all(seen.token_gap > 0)
    assert 0 < seen.prefill_busy < 1 and 0 < seen.decode_busy <= 1


def test_cpu_work_that_is_not_hidden_slows_every_token():
    hidden, open_ = simulate(decode_case(), LOAD), simulate(decode_case(overlap=False), LOAD)
    assert np.median(open_.token_gap) > np.median(hidden.token_gap)


def test_apart_keeps_the_worst_gap_between_tokens_smaller_than_together():
    apart, together = simulate(decode_case(), LOAD), simulate(decode_case(together=True), LOAD)
    assert np.quantile(apart.worst_gap, 0.99) < np.quantile(together.worst_gap, 0.99)


def one_by_one(*arrivals: float) -> Requests:
    count = len(arrivals)
    return Requests(np.array(arrivals), inputs=np.ones(count), cached=np.zeros(count), outputs=np.full(count, 2.0))


def test_the_gap_behind_the_first_token_counts():
    """A prompt of 1 s, then 0.5 s for the KV, then 2 steps of 0.1 s: the second token comes 0.6 s behind the first."""
    alone = cluster(prefill_rate=1.0, step_fixed=0.1, tokens_per_step=1.0, kv_bytes=1.0, transfer_rate=2.0)
    seen = simulate(alone, one_by_one(0.0))
    assert (seen.ttft[0], seen.worst_gap[0], seen.token_gap[0]) == pytest.approx((1.0, 0.6, 0.35))


def test_together_serves_every_waiting_prompt_before_the_next_step():
    """Two prompts of 1 s at once: first tokens at 1 and 2 s; the first reader waits 1 s + a step of 0.1 s, the second a step."""
    both = cluster(prefill_rate=1.0, step_fixed=0.1, tokens_per_step=1.0, together=True)
    seen = simulate(both, one_by_one(0.0, 0.0))
    assert seen.ttft == pytest.approx([1.0, 2.0]) and seen.worst_gap == pytest.approx([1.1, 0.1])


def test_overload_is_named_and_long_runs_must_be_asked_for():
    with pytest.raises(NotPossible, match="prefill pool"):
        simulate(decode_case(prefill_rate=1000.0), LOAD)
    with pytest.raises(NotPossible, match="decode pool"):
        simulate(decode_case(step_fixed=1.0), LOAD)
    with pytest.raises(NotPossible, match="events"):
        simulate(decode_case(step_fixed=1e-9, step_per_row=0, cpu_time=0), LOAD)


@pytest.mark.parametrize(("name", "changes"), [("ranks", {"ranks": 3}), ("slots", {"slots": 0}), ("cpu_time", {"cpu_time": -1.0}),
                                               ("prefill_rate", {"prefill_rate": float("nan")})])
def test_bad_clusters_name_the_parameter(name, changes):
    with pytest.raises(InputError, match=name):
        decode_case(**changes)
