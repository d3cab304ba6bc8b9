"""Generated agents and chat: calibration, the calendar, retention, and agreement with a replay of the same requests."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from inside_deepinfer.cache.generated_trace import trace_chunks, write_trace
from inside_deepinfer.cache.hit_curve import curve_of
from inside_deepinfer.cache.reuse import Definition, Question, replay
from inside_deepinfer.cache.trace_format import TraceReader
from inside_deepinfer.cache.workload_sensitivity import MOVES, retention_loss, sensitivity
from inside_deepinfer.cache.workloads import (
    Workload,
    _read_and_written,
    calibrated,
    calibrated_curve,
    calibrated_requests,
    generate,
    hit_rate,
    hit_tokens,
    mixed_life,
    mixed_reuse,
    on_the_clock,
    retention_balance,
    workload,
)
from inside_deepinfer.facts import InputError, NotPossible, load_facts

DAY = 86_400.0


def test_calibration_meets_the_published_mean_and_hit_rate():
    """Claims prefill.input_mean and prefill.hit_rate: 77K tokens and 96 %."""
    found = calibrated()
    assert found.mean_input == pytest.approx(77_000, rel=1e-3)
    assert found.hit_rate == pytest.approx(0.96, abs=1e-4)
    changed = {field.name for field in fields(Workload) if getattr(found.agents, field.name) != getattr(workload("agents"), field.name)}
    assert changed == {"turns", "step"} and found.chat == workload("chat")


def test_calibration_hardly_depends_on_the_seed():
    turns = [calibrated(seed).agents.turns for seed in range(3)]
    assert max(turns) / min(turns) < 1.03


def test_calibration_that_cannot_be_says_so(monkeypatch):
    import inside_deepinfer.cache.workloads as module

    thirsty = replace(workload("chat"), first=200_000)
    monkeypatch.setattr(module, "workload", lambda name: thirsty if name == "chat" else workload(name))
    with pytest.raises(NotPossible, match="chat alone"):
        module.calibrated.__wrapped__(sessions=500)


def test_retention_of_the_generated_traffic():
    """Chat loses 0.5 to 1 point at 3 instead of 7 days (claim storage.retention_effect); agents lose less."""
    low, high = load_facts().quantity("storage.retention_effect").value
    chat, agents = (retention_loss(calibrated().workloads[kind], 3, 7) for kind in ("chat", "agents"))
    assert low <= chat <= high
    assert 0 < agents < low


def test_hit_rate_against_retention():
    requests = calibrated_requests("agents")
    days = np.array([0, 1e-6, 0.01, 1, 3, 7, 1e6, np.inf])
    rates = hit_rate(requests, days)
    assert rates[0] == 0 and rates[1] > 0  # the shared beginning is in use all the time
    assert np.all(np.diff(rates) >= 0) and rates[-1] <= 1
    for day, rate in zip(days[1:], rates[1:], strict=True):
        assert rate == pytest.approx(hit_tokens(requests, float(day)).sum() / requests.input_tokens.sum())
    for bad in (-1, float("nan")):
        with pytest.raises(InputError, match="retention"):
            hit_rate(requests, bad)


def test_hits_by_block_size_and_what_is_written():
    small, usual, large = (calibrated_curve("chat", block) for block in (16, 128, 4096))
    assert small.at(7) > usual.at(7) > large.at(7)
    assert usual.at(7) == hit_rate(calibrated_requests("chat"), 7)
    made = calibrated_requests("chat")
    written = (made.input_tokens - hit_tokens(made, 7) + made.output_tokens).mean()
    assert usual.written_per_request(7) == pytest.approx(written)
    for block in (0, -128, 1.5, float("nan")):
        with pytest.raises(InputError, match="block"):
            calibrated_curve("chat", block)


def test_what_is_kept_is_the_integral_of_what_grows_old():
    """Tokens that reach an age without another use are those that would be written if they were dropped at that age."""
    curve = calibrated_curve("chat", 128)
    days = np.linspace(3, 7, 4001)
    by_hand = np.trapezoid([curve.written_per_request(day) for day in days], days)
    assert curve.kept_per_request(7, 3) == pytest.approx(by_hand, rel=1e-4)
    assert curve.kept_per_request(7) == pytest.approx(curve.kept_per_request(3) + curve.kept_per_request(7, 3))
    assert curve.kept_per_request(3, 3) == 0
    for bad in ((2, 3), (float("inf"), 3), (float("nan"), 0), (3, -1)):
        with pytest.raises(InputError, match="retention_days"):
            curve.kept_per_request(*bad)


def test_a_simulated_store_holds_what_the_integral_says():
    """Token-days by walking through the sessions: what one holds lies there until its next request, at most for the retention."""
    requests = generate(replace(workload("chat"), hours=24), 400, seed=2)
    kept_days, block = 2.0, 1
    same = np.r_[requests.session[1:] == requests.session[:-1], False]
    pause = np.r_[requests.gap[1:], np.inf] / DAY
    stored = requests.input_tokens + requests.output_tokens - requests.shared  # what the session holds after this request
    content = float((stored * np.where(same, np.minimum(pause, kept_days), kept_days)).sum())
    shown = curve_of(requests, block).kept_per_request(kept_days) * len(requests.gap)
    assert shown == pytest.approx(content, rel=0.03)  # the block rule computes the last 134 tokens of each prompt again


def test_mixed_life_and_reuse():
    """Agents 3 days and chat 7 after the last use lie 3.57 days; sessions of one request are never read beyond their shared beginning."""
    assert mixed_life(3, 7, 128) == pytest.approx(3.574, abs=2e-3)
    assert mixed_life(7, 7, 128) == pytest.approx(7.44, abs=0.01)
    assert mixed_reuse(3, 7, 128) == pytest.approx(0.920, abs=1e-3)
    once = generate(replace(workload("chat"), turns=1), 50)
    assert _read_and_written(once, 7, 128)[0] == 0
    kind = {name: _read_and_written(calibrated_requests(name), days, 128) for name, days in (("agents", 3), ("chat", 7))}
    assert [read / written for read, written in kind.values()] == pytest.approx([0.933, 0.750], abs=1e-3)


def test_four_more_days_against_what_each_kind_writes():
    """Chat writes 0.195 tokens per input token and agents 0.045, at 0.00865 uses a day that pay: 0.683 and 0.158 points for four days."""
    reuse = 3.204e-10 / 3.7037e-8  # fact-by-fact in test_cache_rules
    agents, chat = (retention_balance(kind, 3, 7, 128, reuse) for kind in ("agents", "chat"))
    assert agents == pytest.approx((0.00160, 0.001577), rel=2e-3)
    assert chat == pytest.approx((0.00567, 0.00683), rel=2e-3)
    assert chat[1] == pytest.approx(4 * 0.197 * reuse, rel=0.02)  # a little more than at seven days is written at three


def test_nights_and_weekends():
    hours, days = 10, 5
    moments = np.array([0, 9.99, 10, 49.99, 50]) * 3600  # hours of presence: Monday, end of Monday, Tuesday, end of Friday, Monday
    assert (on_the_clock(moments, hours, days) / 3600).tolist() == pytest.approx([0, 9.99, 24, 4 * 24 + 9.99, 7 * 24])
    assert np.array_equal(on_the_clock(moments, 24, 7), moments)
    gaps = calibrated_requests("agents").gap
    assert ((gaps > 14 * 3600) & (gaps < 16 * 3600)).mean() > 0.005  # overnight
    assert ((gaps > 62 * 3600) & (gaps < 72 * 3600)).mean() > 0.001  # over a weekend, within three days


def test_requests_are_what_they_should_be():
    requests = generate(workload("chat"), 300, seed=3)
    assert np.all(np.isinf(requests.gap) == (requests.turn == 0))
    assert np.all(requests.gap >= 0) and np.all(requests.known < requests.input_tokens)
    assert np.all(requests.input_tokens <= 2**20)
    same = requests.session[1:] == requests.session[:-1]
    assert np.all(np.diff(requests.input_tokens)[same] > 0) and np.all(np.diff(requests.time)[same] >= 0)
    again = generate(workload("chat"), 300, seed=3)
    assert np.array_equal(requests.time, again.time) and not np.array_equal(requests.time, generate(workload("chat"), 300, 4).time)


def test_one_input_changes_only_its_effect():
    one, other = generate(workload("chat"), 300), generate(replace(workload("chat"), gap=150.0), 300)
    assert np.array_equal(one.input_tokens, other.input_tokens) and not np.array_equal(one.gap, other.gap)


@pytest.mark.parametrize("kind", ["agents", "chat"])
def test_replay_of_the_trace_agrees_with_the_arithmetic(kind):
    load = replace(workload(kind), output_stored=False, turns=8)
    requests = generate(load, 150)
    question = Question((3 * DAY, 7 * DAY, float("inf")), definition=Definition(rule="v4.1"))
    report = replay(trace_chunks(load, 150, 128), question, 128, 890.0)
    total = requests.input_tokens.sum()
    assert (report.requests_seen, report.input_tokens) == (len(requests.gap), total)
    cold = (load.shared // 128 * 128) / total  # in the trace somebody is the first to send the shared beginning
    assert report.hit_rate() == pytest.approx(hit_rate(requests, np.inf) - cold, abs=1e-9)
    for days, rate in zip((3, 7), report.at_retentions(), strict=False):
        assert rate == pytest.approx(hit_rate(requests, days), abs=5 * cold)


def test_trace_is_written_and_read_back(tmp_path):
    for name in ("t.jsonl", "t.jsonl.gz"):
        made = list(trace_chunks(workload("chat"), 40, 128))
        assert write_trace(tmp_path / name, iter(made)) == sum(chunk.requests for chunk in made)
        read = list(TraceReader(tmp_path / name, block_tokens=128))
        for column in ("time", "input_tokens", "output_tokens", "ids"):
            assert np.array_equal(*(np.concatenate([getattr(chunk, column) for chunk in side]) for side in (made, read)))


def test_sensitivity_names_the_long_pause_first():
    moves = sensitivity(workload("chat"), 3, 7, sessions=1500)
    assert {move.input for move in moves} == set(MOVES)
    assert moves[0].input == "return_share" and moves[0].loss_low < moves[0].loss_high
    assert [move.reach for move in moves] == sorted((move.reach for move in moves), reverse=True)


def test_bad_workloads_are_refused():
    for change in (dict(step=0), dict(gap=-1), dict(turns=0.5), dict(return_share=1.1), dict(hours=25), dict(days=0),
                   dict(shared=2**21), dict(gap_sigma=float("nan")), dict(return_hours=float("inf"))):
        with pytest.raises(InputError):
            replace(workload("chat"), **change)
    for call in (lambda: workload("email"), lambda: calibrated_requests("email"), lambda: generate(workload("chat"), 0)):
        with pytest.raises(InputError):
            call()
