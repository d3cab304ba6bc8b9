"""Sampled replays: what they estimate, how far off they are, and whether the stated bound holds."""

from __future__ import annotations

import numpy as np
import pytest
from traces import chunk, public

from inside_deepinfer.cache.generated_trace import trace_chunks
from inside_deepinfer.cache.reuse import Question, replay
from inside_deepinfer.cache.sampling import GROUPS, Sample, standard_error
from inside_deepinfer.cache.trace_format import TraceReader
from inside_deepinfer.cache.workloads import workload
from inside_deepinfer.facts import InputError

HOLDS = 0.95  # share of the asked points that the bound must hold (points of one seed go together)


def outside(chunks, block, rate, seeds):
    """Share of asked points, over several seeds, at which the bound does not reach the exact answer."""
    exact = replay(chunks, Question(), block, 890.0)
    missed = total = 0
    for seed in range(seeds):
        some = replay(chunks, Question(sample=Sample(rate, seed)), block, 890.0)
        for answer, truth, error in ((some.at_retentions(), exact.at_retentions(), some.retention_error()),
                                     (some.at_capacities(), exact.at_capacities(), some.capacity_error())):
            missed += int((np.abs(answer - truth) > error + 1e-12).sum())
            total += len(answer)
    return missed / total


def test_bound_holds_on_generated_chat():
    chunks = list(trace_chunks(workload("chat"), 600, 128))
    assert outside(chunks, 128, 0.1, 8) <= 1 - HOLDS


@pytest.mark.parametrize("name", ["mooncake_conversation.jsonl.gz", "mooncake_synthetic.jsonl.gz"])
def test_bound_holds_on_public_traces(name):
    reader = TraceReader(public(name))
    assert outside(list(reader), reader.block_tokens, 0.1, 4) <= 1 - HOLDS


def test_sample_of_everything_is_exact():
    chunks = list(trace_chunks(workload("chat"), 100, 128))
    full, all_of_them = (replay(chunks, Question(sample=Sample(rate)), 128, 890.0) for rate in (1.0, 1))
    assert full.as_json() == all_of_them.as_json()
    assert full.as_json()["sample"] is None and not full.retention_error().any() and not full.capacity_error().any()


def test_sample_states_rate_and_bound():
    chunks = list(trace_chunks(workload("chat"), 300, 128))
    answer = replay(chunks, Question(sample=Sample(0.25)), 128, 890.0).as_json()
    assert answer["sample"]["rate"] == pytest.approx(0.25)
    assert set(answer["sample"]["error_bound"]["retention"]) == set(answer["retention"])
    assert set(answer["sample"]["error_bound"]["capacity"]) == set(answer["capacity"])
    exact = replay(chunks, Question(), 128, 890.0)
    assert answer["requests"] == exact.requests_seen
    assert answer["distinct_blocks"] == pytest.approx(exact.distinct_blocks, rel=0.1)


@pytest.mark.parametrize("first", [0, 7])
def test_one_block_that_everybody_shares_does_not_spoil_the_sample(first):
    """Half of all references go to one block; a sample has it or has it not."""
    chunks = [chunk((n, 256, [first, 1000 + n]) for n in range(4000))]
    exact = replay(chunks, Question(), 128, 890.0).hit_rate()
    for seed in range(6):
        some = replay(chunks, Question(sample=Sample(0.05, seed)), 128, 890.0)
        assert some.hit_rate() == pytest.approx(exact, abs=0.1)


def test_rate_and_groups():
    ids = np.arange(200_000)
    for rate in (0.5, 0.01):
        kept, group = Sample(rate).choose(ids)
        assert kept.mean() == pytest.approx(rate, rel=0.05)
        assert np.bincount(group, minlength=GROUPS).min() > 0.9 * len(ids) / GROUPS
    kept = [Sample(0.5, seed).choose(ids)[0] for seed in (0, 1)]
    assert 0.45 < (kept[0] == kept[1]).mean() < 0.55
    for bad in (0, -0.1, 1.1, float("nan"), "half"):
        with pytest.raises(InputError, match="sample"):
            Sample(bad)


def test_standard_error_of_equal_groups_is_zero():
    assert standard_error(np.full((GROUPS, 2), 7.0), 1000.0, 0.1).tolist() == [0.0, 0.0]
