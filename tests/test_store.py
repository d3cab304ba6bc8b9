"""The KV store: the closure of the day's tokens with the stated capacity, servers, network, block rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.cache import store
from inside_deepinfer.facts import InputError
from inside_deepinfer.facts.units import PIB

steady = settings(max_examples=200)


def test_published_scenario_gives_the_known_values():
    """Expected: the project's list of claims and its public measurements, section 6."""
    value = catalogue.value
    assert value("kv_bytes_per_request") == pytest.approx(68.5e6, rel=1e-3)  # 77,000 * 890
    assert value("cached_read_per_prefill_gpu") == pytest.approx(1.28e9, rel=2e-3)  # 1.44M * 890
    assert value("network_per_machine") == pytest.approx(167e9, rel=4e-3)
    assert value("store_servers_raw") == pytest.approx(183.2, abs=0.05)
    assert value("store_servers") == pytest.approx(219.8, abs=0.05)
    assert value("stored_bytes_per_day") == pytest.approx(6.8e15, rel=0.01)
    assert value("store_bytes_for_retention") == pytest.approx(20e15, rel=0.02)
    assert value("store_bytes_for_retention", retention_days=7.0) == pytest.approx(47e15, rel=0.01)
    assert value("longest_hit") == 76_800
    assert value("state_bytes_per_day") / value("requests_per_day") == 1_415_040


def test_a_small_store_by_hand():
    """1,000 tokens a day, 9 in for 1 out, half of the input cached: 450 + 100 new tokens of 2 bytes."""
    out = store.output_tokens_per_day(1000, 9)
    assert out == 100
    new = store.new_tokens_per_day(1000, out, 0.5)
    assert new == 550
    written = store.stored_bytes_per_day(new, 2)
    assert written == 1100
    assert store.store_bytes_for_retention(written, 3) == 3300
    assert store.store_fill_days(11_000, written) == 10
    assert store.requests_per_day(1000, out, 90) == 10
    assert store.erasure_overhead(10, 2) == 1.2
    assert store.store_servers(store.store_servers_raw(1200, store.server_raw_bytes(20, 30)), 1.2) == pytest.approx(2.4)
    assert store.store_servers_for_writes(86_400, 1.2, 0.4) == pytest.approx(3.0)
    assert store.store_servers_for_reads(80.0, 40.0) == 2.0
    assert store.network_per_machine(8, 1.0, 2.0) == 192  # bits
    assert store.kv_transfer_time(50e9, 400, 8) == pytest.approx(8.0)  # one GPU of eight has 50 Gbit/s


@given(tokens=st.floats(1e9, 1e16), io=st.floats(0.1, 2000), h=st.floats(0, 0.995))
@steady
def test_new_and_cached_tokens_are_all_tokens(tokens, io, h):
    out = store.output_tokens_per_day(tokens, io)
    new = store.new_tokens_per_day(tokens, out, h)
    assert new + (tokens - out) * h == pytest.approx(tokens)
    assert out <= new * (1 + 1e-12) <= tokens * (1 + 1e-9)


@given(h=st.floats(0, 0.99), more=st.floats(0.001, 0.005))
@steady
def test_more_hits_write_less_and_read_more(h, more):
    write = catalogue.value("stored_bytes_per_day", hit_rate=np.array([h, h + more]))
    read = catalogue.value("cached_read_per_prefill_gpu", hit_rate=np.array([h, h + more]))
    assert write[1] < write[0] and read[1] > read[0]


@given(capacity=st.floats(1e12, 1e19), days=st.floats(0.01, 365))
@steady
def test_a_store_fills_in_the_days_it_holds(capacity, days):
    found = catalogue.evaluate(["store_fill_days", "stored_bytes_per_day"], store_capacity=capacity)
    assert found["store_fill_days"].value * found["stored_bytes_per_day"].value == pytest.approx(capacity)
    need = catalogue.value("store_bytes_for_retention", retention_days=days)
    assert catalogue.value("store_fill_days", store_capacity=need) == pytest.approx(days)


@given(data=st.integers(1, 64), parity=st.integers(0, 16))
@steady
def test_parity_costs_its_share(data, parity):
    overhead = store.erasure_overhead(data, parity)
    assert overhead >= 1 and overhead * data == pytest.approx(data + parity)


@given(length=st.integers(1, 1_048_576))
@steady
def test_the_longest_hit_is_whole_blocks_and_leaves_the_suffix(length):
    hit = store.longest_hit(length, 128, 134)
    assert hit % 128 == 0 and 0 <= hit < length
    if hit:
        assert hit <= length - 134 < hit + 128
    else:
        assert length - 134 < 128


def test_longest_hit_at_the_edges():
    lengths = np.array([1, 134, 261, 262, 389, 390])
    np.testing.assert_array_equal(store.longest_hit(lengths, 128, 134), [0, 0, 0, 128, 128, 256])
    assert store.hit_limit(262, 134) == 128


def test_the_stated_capacity_is_a_hundred_pebibytes():
    assert catalogue.value("store_capacity") == 100 * PIB


@pytest.mark.parametrize("wrong", [
    lambda: store.output_tokens_per_day(0, 9),
    lambda: store.output_tokens_per_day(1000, 0),
    lambda: store.new_tokens_per_day(1000, 100, 1.5),
    lambda: store.store_bytes_for_retention(1100, 0),
    lambda: store.store_bytes_for_retention(1100, float("inf")),
    lambda: store.store_fill_days(0, 1100),
    lambda: store.server_raw_bytes(0, 30e12),
    lambda: store.erasure_overhead(0, 2),
    lambda: store.erasure_overhead(10, -1),
    lambda: store.hit_limit(134, 134),
    lambda: store.longest_hit(0, 128, 134),
    lambda: store.kv_transfer_time(1e6, 0, 8),
])
def test_impossible_stores_are_errors(wrong):
    with pytest.raises(InputError, match="allowed is"):
        wrong()


def test_servers_that_each_demand_asks_for():
    """By hand: 200 bytes in servers of 10 with 10+2 are 24 servers, 3 days of 30 bytes are 10.8."""
    assert store.store_servers_for_retention(90.0, 1.2, 10.0) == pytest.approx(10.8)
    assert store.store_over_retention(200.0, 50.0) == 4
    assert store.store_binding(24.0, 30.0, 2.0) == "reads"
    assert store.store_binding(np.array([24.0, 1.0]), np.array([3.0, 2.0]), 2.5).tolist() == ["capacity", "writes"]
    assert store.network_use(200e9, 400) == 0.5
    assert catalogue.value("store_binding") == "capacity"
    assert catalogue.value("network_use") == pytest.approx(167.5 / 400, rel=1e-3)
    assert catalogue.value("store_years_to_loss") == pytest.approx(1 / catalogue.value("store_loss_per_year"), rel=1e-3)


def test_shares_of_store_and_network():
    """3.57 of the 16.7 days that fill it; 1.28 and 1.33 GB/s of each of eight cards, the larger alone against 400 Gbit/s."""
    assert catalogue.value("mixed_share_of_store") == pytest.approx(3.574 / 16.698, rel=1e-3)
    lives = catalogue.value("mixed_life_days", retention_days=np.array([1.0, 3.0, 7.0]))
    assert np.all(np.diff(lives) > 0)
    assert catalogue.value("network_use_one_way") == pytest.approx(8 * 8 * 1.335e9 / 400e9, rel=1e-3)
    assert store.network_use_one_way(8, np.array([1e9, 3e9]), 2e9, 400).tolist() == pytest.approx([0.32, 0.48])


def test_block_size_moves_the_longest_hit():
    np.testing.assert_array_equal(store.longest_hit(1000, np.array([128, 512, 1024]), 134), [768, 512, 0])
    assert catalogue.value("longest_hit", block_tokens=1024) == 76_800 // 1024 * 1024
    assert catalogue.value("state_missing_loss", block_tokens=770) == pytest.approx(0.01)
