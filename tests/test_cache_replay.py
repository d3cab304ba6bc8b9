"""The one-pass replay against answers worked out by hand, against a plain simulation, and against published counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import HAND, chunk, public

from inside_deepinfer.cache.capacity import earlier_greater, running_maximum
from inside_deepinfer.cache.distributed import Reading, analyse
from inside_deepinfer.cache.histogram import FINE, NEVER, Hits, bucket_ends, bucket_of
from inside_deepinfer.cache.last_touch import UNKNOWN, IdTable, LastTouch
from inside_deepinfer.cache.retention import Growth
from inside_deepinfer.cache.reuse import LAST_HALF, WHOLE, Definition, Question, replay
from inside_deepinfer.cache.trace_format import Chunk
from inside_deepinfer.facts import InputError, NotPossible, load_facts

INF = float("inf")
BLOCK = 128


def ask(requests, *, retentions=(INF,), capacities=(), definition=WHOLE, cuts=(), measured_from=0, block=BLOCK):
    """Replay requests, cut into chunks at ``cuts``; capacities in blocks (one byte of KV per token)."""
    edges = [0, *cuts, len(requests)]
    parts = [chunk(requests[a:b]) for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]
    question = Question(tuple(retentions), tuple(float(c * block) for c in capacities), definition)
    return replay(parts, question, block, 1.0, measured_from)


# --- the shipped trace, answers from data/traces/README.md
def hand(definition=WHOLE):
    question = Question((0, 30, 60, 90, 300, 360, 3900, INF), tuple(128.0 * n for n in (0, 1, 2, 4, 5, 6, 7)), definition)
    return analyse(HAND, question, Reading(kv_bytes=1.0))


def test_hand_checked_trace():
    report = hand()
    assert (report.requests_seen, report.input_tokens, report.block_tokens, report.distinct_blocks) == (8, 2708, 128, 13)
    assert report.hit_rate() == 1280 / 2708
    assert report.hit_rate("blocks") == 10 / 23
    assert report.hit_rate("requests") == 5 / 8
    assert np.array_equal(report.at_retentions() * 2708, [0, 256, 640, 768, 896, 1152, 1280, 1280])
    assert np.array_equal(report.at_capacities() * 2708, [0, 384, 512, 640, 896, 1152, 1280])
    assert report.mean_input_tokens == 2708 / 8
    assert report.seconds == 4000
    assert report.reuse_quantiles()[0.5] == pytest.approx(60, rel=1e-3)  # 10, 30, 40, 40, 60, 90, 300, 360, 360, 3900


@pytest.mark.parametrize(("definition", "expected"), [
    (Definition(rule="v4.1"), 1024 / 2708), (Definition(rule="v4.1-state-missing"), 512 / 2708), (LAST_HALF, 512 / 1124),
    (Definition(weight="blocks"), 10 / 23), (Definition(weight="requests"), 5 / 8),
    (Definition(weight="requests", rule="v4.1"), 4 / 8)])
def test_hand_checked_definitions(definition, expected):
    report = hand(definition)
    assert report.hit_rate() == expected
    assert str(definition) and report.as_json()["definition"] == str(definition)


# --- public traces: ../shared/traces/README.md and kvcache-simulator 0.1.3
@pytest.mark.parametrize(("name", "percents"), [
    ("mooncake_conversation.jsonl.gz", (4.37, 10.54, 29.34, 35.01, 37.36)),
    ("mooncake_synthetic.jsonl.gz", (10.9, 32.76, 59.5, 64.55, 65.12))])
def test_published_retention_table(name, percents):
    report = analyse(public(name), Question((10, 60, 300, 600, INF)), Reading(kv_bytes=890.0))
    printed = [len(str(value).split(".")[1]) for value in percents]
    assert [round(100 * rate, places) for rate, places in zip(report.at_retentions(), printed, strict=True)] == list(percents)


@pytest.mark.parametrize(("name", "percent"), [("mooncake_conversation.jsonl.gz", 39.8113), ("mooncake_synthetic.jsonl.gz", 86.2750)])
def test_last_half_is_what_kvcache_simulator_prints(name, percent):
    report = analyse(public(name), Question(definition=LAST_HALF), Reading(kv_bytes=890.0))
    assert round(100 * report.hit_rate(), 4) == percent


def test_capacities_equal_kvcache_simulator():
    """Hit tokens of its tree LRU, V4-Flash, 512-token blocks: 1 GiB = 628 blocks -> 3,109,195 of 67,915,607."""
    report = analyse(public("mooncake_conversation.jsonl.gz"), Question(capacities=(628.0 * 512,), definition=LAST_HALF),
                     Reading(kv_bytes=1.0))
    assert round(report.at_capacities()[0] * 67_915_607) == 3_109_195


# --- a plain simulation, one request at a time
def simulate(requests, block=BLOCK, retention=INF, capacity=None):
    """Hit tokens by the definition: look up the prefix, then touch all blocks, the last first."""
    order, touched, hits = [], {}, 0
    for time, length, ids in requests:
        held = set(order[:capacity]) if capacity is not None else set(order)
        for place, one in enumerate(ids):
            if one not in held or time - touched[one] > retention or retention == 0:
                break
            hits += min(block, length - place * block)
        for one in reversed(ids):
            if one in touched:
                order.remove(one)
            order.insert(0, one)
            touched[one] = time
    return hits


@st.composite
def traces(draw, any_ids=False):
    """Requests that grow or branch from earlier ones; with ``any_ids`` ids need not stand for prefixes."""
    requests, time, fresh = [], 0.0, 0
    for _ in range(draw(st.integers(1, 25))):
        time += draw(st.sampled_from([0, 0.5, 1, 7, 60]))
        if any_ids:
            ids = draw(st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True))
        else:
            base = draw(st.sampled_from(requests))[2] if requests and draw(st.booleans()) else []
            kept, new = draw(st.integers(0, len(base))), draw(st.integers(0 if base else 1, 4))
            ids = base[:kept] + list(range(fresh, fresh + new))
            fresh += new
            ids = ids or [0]
        length = BLOCK * (len(ids) - 1) + draw(st.integers(1, BLOCK))
        requests.append((time, length, ids))
    return requests


@settings(max_examples=40)
@given(traces(), st.lists(st.integers(1, 24), max_size=3))
def test_replay_equals_simulation(requests, cuts):
    cuts = sorted({cut for cut in cuts if cut < len(requests)})
    retentions, capacities = (0, 0.5, 1, 8, 61, INF), (0, 1, 2, 3, 5, 8, 13, 100)
    report = ask(requests, retentions=retentions, capacities=capacities, cuts=cuts)
    total = sum(length for _, length, _ in requests)
    assert [round(rate * total) for rate in report.at_retentions()] == [simulate(requests, retention=t) for t in retentions]
    assert [round(rate * total) for rate in report.at_capacities()] == [simulate(requests, capacity=c) for c in capacities]


@settings(max_examples=40)
@given(traces(any_ids=True), st.integers(0, 24))
def test_ids_that_are_no_prefixes_still_obey_the_prefix_rule(requests, cut):
    report = ask(requests, retentions=(1, 8, INF), capacities=(1, 2, 3, 5, 8), cuts=[cut] if 0 < cut < len(requests) else [])
    total = sum(length for _, length, _ in requests)
    assert [round(rate * total) for rate in report.at_retentions()] == [simulate(requests, retention=t) for t in (1, 8, INF)]
    assert [round(rate * total) for rate in report.at_capacities()] == [simulate(requests, capacity=c) for c in (1, 2, 3, 5, 8)]


@settings(max_examples=30)
@given(traces(), st.integers(0, 2**60))
def test_hashed_ids_give_the_same_answers(requests, salt):
    hashed = [(time, length, [(one * 0x9E3779B97F4A7C15 + salt) % 2**64 - 2**63 for one in ids]) for time, length, ids in requests]
    one, other = (ask(rows, retentions=(1, INF), capacities=(2, 9), cuts=[len(rows) // 2]) for rows in (requests, hashed))
    assert one.as_json() == other.as_json()


@settings(max_examples=30)
@given(traces())
def test_curves_rise_and_end_at_the_hit_rate(requests):
    report = ask(requests, retentions=(0, 1, 60, INF), capacities=(0, 1, 10, 1000))
    for rates in (report.at_retentions(), report.at_capacities(), report.retention_curve()[1], report.capacity_curve()[1]):
        assert np.all(np.diff(rates) >= 0) and np.all((rates >= 0) & (rates <= 1))
    assert report.at_retentions()[-1] == report.hit_rate() == report.at_capacities()[-1]
    assert report.growth.curve()[1][-1] == report.distinct_blocks


def test_neighbours_by_chance_keep_their_own_times():
    """Block 9 was touched last at 7 s and block 0 at 0 s, side by side in the order of touches, by two requests."""
    requests = [(0, 256, [0, 3]), (7, 256, [5, 9]), (7, 256, [9, 0])]
    assert (ask(requests, retentions=(1, 7)).at_retentions() * 768).tolist() == [128, 256]


def test_warm_up_counts_the_later_requests_only():
    requests = [(0, 128, [1]), (1, 128, [1]), (2, 256, [1, 2]), (3, 256, [1, 3])]
    assert ask(requests, definition=LAST_HALF, measured_from=2).hit_rate() == 0.5
    with pytest.raises(NotPossible, match="no request is left"):
        ask(requests, definition=LAST_HALF, measured_from=4).hit_rate()


def test_retention_and_capacity_limits():
    requests = [(0, 128, [1]), (0, 128, [1])]
    report = ask(requests, retentions=(0, 1e-6, INF), capacities=(0, 1))
    assert list(report.at_retentions()) == [0.0, 0.5, 0.5]  # kept 0 s is not kept at all, even at the same moment
    assert list(report.at_capacities()) == [0.0, 0.5]
    for bad in ((-1,), (float("nan"),), ("3d",)):
        with pytest.raises(InputError, match="retention"):
            ask(requests, retentions=bad)
    for bad in (-1.0, INF, float("nan")):
        with pytest.raises(InputError, match="capacity"):
            replay([], Question(capacities=(bad,)), BLOCK, 1.0)
    for bad in (dict(weight="bytes"), dict(warm_up=1.0), dict(warm_up=-0.1), dict(rule="v5")):
        with pytest.raises(InputError):
            Definition(**bad)


# --- parts
@settings(max_examples=80)
@given(st.permutations(range(40)), st.data())
def test_earlier_greater(values, data):
    values = values[:data.draw(st.integers(0, 40))]
    weights = data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    expected = [sum(weights[j] for j in range(i) if values[j] > values[i]) for i in range(len(values))]
    assert earlier_greater(np.array(values, dtype=np.int64), np.array(weights, dtype=np.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=30))
def test_running_maximum(rows):
    rows.sort(key=lambda row: row[0])
    request, distance = np.array(rows).T
    expected = [max(d for r, d in rows[:i + 1] if r == rows[i][0]) for i in range(len(rows))]
    assert running_maximum(distance, request).tolist() == expected


@given(st.lists(st.integers(0, 2**61), min_size=1, max_size=50))
def test_buckets_hold_what_they_say(distances):
    distance = np.array([d for d in distances if d < 2**53], dtype=np.int64)
    bucket, ends = bucket_of(distance), bucket_ends()
    assert np.all(distance <= ends[bucket])
    assert np.all(distance > np.where(bucket > 0, ends[np.maximum(bucket - 1, 0)], -1))
    assert np.all(ends[bucket] <= distance * (1 + 1 / FINE) + 1)


def test_hits_merge_and_ignore_first_uses():
    one, both = Hits(np.array([5]), 1), Hits(np.array([5]), 1)
    one.add(np.array([3, 9, NEVER]), np.array([[2, 3, 100]]))
    both.merge(one)
    both.merge(one)
    assert (one.at_asked(0).tolist(), one.total(0).tolist()) == ([[2]], [5])
    assert (both.at_asked(0).tolist(), both.total(0).tolist()) == ([[4]], [10])


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-2**63, 2**63 - 1), max_size=60), max_size=6))
def test_id_table_numbers_every_id_once(batches):
    table, known = IdTable(), {}
    for batch in batches:
        ids = np.unique(np.array(batch, dtype=np.int64))
        for one, number in zip(ids.tolist(), table.numbers(ids).tolist(), strict=True):
            assert known.setdefault(one, number) == number
    assert sorted(known.values()) == list(range(len(known))) and table.count == len(known)


def test_id_table_grows():
    table, ids = IdTable(), np.arange(200_000, dtype=np.int64) * 1_000_003
    first = table.numbers(ids)
    assert len(np.unique(first)) == len(ids) and np.array_equal(table.numbers(ids), first)


def test_last_touch_moves_from_numbers_to_hashes():
    touches = LastTouch()
    assert touches.exchange(np.array([0, 1]), np.array([0, 1]))[0].tolist() == [UNKNOWN, UNKNOWN]
    previous, inside, final = touches.exchange(np.array([1, 2**40, 0, 2**40]), np.array([2, 3, 4, 5]))
    assert previous.tolist() == [1, UNKNOWN, 0, 3]
    assert inside.tolist() == [False, False, False, True] and final.tolist() == [True, False, True, True]
    assert touches.distinct == 3


def test_growth_is_the_same_however_it_is_added():
    rng = np.random.default_rng(1)
    times, new = np.sort(rng.integers(0, 10**13, 500)), rng.integers(0, 9, 500)
    whole, parts, left, right = Growth(), Growth(), Growth(), Growth()
    whole.add(times, new)
    for part in np.array_split(np.arange(500), 7):
        parts.add(times[part], new[part])
    left.add(times[:50], new[:50])
    right.add(times[50:], new[50:])
    left.merge(right)
    for other in (parts, left):
        assert other.width == whole.width and np.array_equal(other.new, whole.new)


def test_empty_chunks_change_nothing():
    nothing = Chunk(*(np.zeros(0, dtype=np.int64) for _ in range(3)), np.zeros(1, dtype=np.int64), *(np.zeros(0, dtype=np.int64),) * 2)
    report = replay([nothing, chunk([(0, 128, [1]), (1, 128, [1])]), nothing], Question(), BLOCK, 1.0)
    assert report.hit_rate() == 0.5


@pytest.mark.parametrize(("name", "share"), [("mooncake_conversation.jsonl.gz", 0.249), ("mooncake_synthetic.jsonl.gz", 0.435)])
def test_share_of_stored_tokens_that_are_read_again(name, share):
    """Fact cache.reuse_share and its note."""
    import gzip
    import json

    seen, again, size = set(), set(), {}
    with gzip.open(public(name), "rt") as lines:
        for request in map(json.loads, lines):
            for place, one in enumerate(request["hash_ids"]):
                size.setdefault(one, min(512, request["input_length"] - 512 * place))
                (again if one in seen else seen).add(one)
    assert round(sum(size[one] for one in again) / sum(size.values()), 3) == share
    if "conversation" in name:
        assert load_facts().number("cache.reuse_share") == share
