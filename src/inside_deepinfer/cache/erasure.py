"""What parity buys a KV store: lost stripes, blocks that cannot be read right now, and reads while servers are down.

A lost block is no lost data but a miss: it is computed again. So the chance of loss matters less than the share of blocks that
cannot be read at a given moment. A hit ends at the first such block, and that is where parity pays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.arrays import scalar
from inside_deepinfer.facts.units import DAYS_PER_YEAR, SECONDS_PER_DAY

SECONDS_PER_YEAR = DAYS_PER_YEAR * SECONDS_PER_DAY


def _check_shards(data_shards: Any, parity_shards: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays, if they are whole numbers that a stripe can have."""
    k = np.asarray(require_positive("data_shards", data_shards), dtype=float)
    m = np.asarray(require_not_negative("parity_shards", parity_shards), dtype=float)
    require((k >= 1) & (k == np.floor(k)), "data_shards", data_shards, "a whole number of at least 1")
    require(m == np.floor(m), "parity_shards", parity_shards, "a whole number of at least 0")
    return k, m


@derived(label="time to rebuild a lost server", unit="s", words=True,
         formula="the slower of reading data_shards times its bytes and writing them, at repair_share of all servers' speed",
         uses={"repair_share": "storage.repair_share"})
def server_rebuild_time(server_raw_bytes: Any, data_shards: Any, store_servers: Any, server_read_speed: Any, server_write_speed: Any,
                        repair_share: Any) -> Any:
    """Every surviving server helps; a server that was full is rebuilt from k shards per lost shard."""
    others = np.asarray(store_servers, dtype=float) - 1
    if np.any(others < 1):
        raise NotPossible(f"a store of {np.min(store_servers):.2g} servers cannot rebuild one of them from the others")
    share = require_between("repair_share", repair_share, 1e-6, 1.0)
    reading = server_raw_bytes * np.asarray(data_shards) / (others * server_read_speed * share)
    return np.maximum(reading, server_raw_bytes / (others * server_write_speed * share))


@derived(label="time until a lost server is whole again", unit="s", formula="repair_delay + server_rebuild_time",
         uses={"repair_delay": "storage.repair_delay"})
def store_repair_time(repair_delay: Any, server_rebuild_time: Any) -> Any:
    """Waiting, in case the server comes back, and rebuilding."""
    return require_not_negative("repair_delay", repair_delay) + server_rebuild_time


@derived(label="time until a lost drive is whole again", unit="s", formula="repair_delay + server_rebuild_time / drives_per_server",
         uses={"repair_delay": "storage.repair_delay"})
def drive_repair_time(repair_delay: Any, server_rebuild_time: Any, drives_per_server: Any) -> Any:
    """A drive holds its share of what a server holds, and the same servers rebuild it."""
    drives = require_positive("drives_per_server", drives_per_server)
    return require_not_negative("repair_delay", repair_delay) + server_rebuild_time / drives


@derived(label="losses of a server or of one of its drives, per server and year", unit="1/year",
         formula="server_failures + drives_per_server * disk_failures",
         uses={"disk_failures": "storage.disk_failures", "server_failures": "storage.server_failures"})
def server_loss_rate(server_failures: Any, drives_per_server: Any, disk_failures: Any) -> Any:
    """Each of them takes shards away until they are rebuilt elsewhere."""
    return require_not_negative("server_failures", server_failures) \
        + require_positive("drives_per_server", drives_per_server) * require_not_negative("disk_failures", disk_failures)


@derived(label="share of time that a server has something to rebuild", unit="ratio",
         formula="(server_failures * store_repair_time + drives_per_server * disk_failures * drive_repair_time) / 31536000",
         uses={"disk_failures": "storage.disk_failures", "server_failures": "storage.server_failures"})
def server_rebuilding_share(server_failures: Any, store_repair_time: Any, drives_per_server: Any, disk_failures: Any,
                            drive_repair_time: Any) -> Any:
    """Losses a year times how long each lasts (365 days of 86,400 s)."""
    lost = server_failures * store_repair_time + drives_per_server * disk_failures * drive_repair_time
    return require_between("share of time that a server is rebuilt", lost / SECONDS_PER_YEAR, 0.0, 1.0)


@derived(label="mean years until some stripe of the store is lost", unit="year", words=True,
         formula="1 / (store_servers * server_loss_rate * C(store_servers - 1, parity_shards) * server_rebuilding_share ** parity_shards)")
def store_years_to_loss(store_servers: Any, data_shards: Any, parity_shards: Any, server_loss_rate: Any,
                        server_rebuilding_share: Any) -> Any:
    """One more server or drive is lost while as many others as there are parity shards are being rebuilt.

    Stripes lie over all servers, which the rebuild by all of them needs, so any so many servers share some stripe; what is lost then
    is a tiny part of the blocks. To first order in ``server_rebuilding_share``, failures independent. A store that rebuilds stripes
    with two losses before the others loses fewer.
    """
    k, m = _check_shards(data_shards, parity_shards)
    servers = np.asarray(require_positive("store_servers", store_servers), dtype=float)
    if np.any(servers < k + m):
        raise NotPossible(f"a stripe of {np.max(k + m):g} shards does not fit on {np.min(servers):.3g} servers, one shard on each")
    others = np.ones(np.broadcast(servers, m, server_rebuilding_share).shape)  # chance that m of the others are being rebuilt
    for one in range(1, int(m.max(initial=0)) + 1):
        others = np.where(one <= m, others * (servers - one) / one * server_rebuilding_share, others)
    years = 1 / (servers * require_positive("server_loss_rate", server_loss_rate) * np.minimum(others, 1.0))
    return scalar(years)


@derived(label="chance that the store loses some stripe within a year", unit="ratio", words=True,
         formula="1 - exp(-1 / store_years_to_loss)")
def store_loss_per_year(store_years_to_loss: Any) -> Any:
    """Losses come independently. What is lost is computed again when asked for."""
    return -np.expm1(-1 / require_positive("store_years_to_loss", store_years_to_loss))


@derived(label="share of blocks that cannot be read now", unit="ratio", words=True,
         formula="server_down times the chance that at least parity_shards of the stripe's other servers are down too",
         uses={"server_down": "storage.server_down"})
def unreadable_share(data_shards: Any, parity_shards: Any, server_down: Any) -> Any:
    """A block lies on one shard; if its server is silent, any k of the others give it back. Servers fail independently."""
    down = np.asarray(require_between("server_down", server_down, 0.0, 1.0), dtype=float)
    data, parity = _check_shards(data_shards, parity_shards)
    others = data + parity - 1
    odds = np.divide(down, 1 - down, out=np.zeros_like(down), where=down < 1)
    exactly = (1 - down) ** others + 0.0 * parity  # chance that 0 of the others are down, then 1, 2, ...
    too_many = np.zeros_like(exactly)
    for lost in range(int(np.max(others)) + 1):
        too_many = too_many + np.where((lost >= parity) & (lost <= others), exactly, 0.0)
        exactly = exactly * np.maximum(others - lost, 0) / (lost + 1) * odds
    share = down * np.where(down < 1, np.minimum(too_many, 1.0), 1.0)
    return scalar(share)


@derived(label="blocks that a mean prompt finds in the store", unit="block", formula="hit_rate * input_tokens / block_tokens")
def hit_blocks(hit_rate: Any, input_tokens: Any, block_tokens: Any) -> Any:
    """Hit tokens of a mean prompt, in blocks of the store."""
    return require_between("hit_rate", hit_rate, 0.0, 1.0) * require_positive("input_tokens", input_tokens) \
        / require_positive("block_tokens", block_tokens)


def prefix_lost(unreadable: Any, blocks: Any) -> Any:
    """Share of the hits that is lost if each of ``blocks`` blocks in a row is unreadable with chance ``unreadable``.

    A block hits only if all blocks before it do, so the first hole ends the hit: on average the sum of q + q^2 + ... + q^blocks
    blocks remain, with q = 1 - unreadable. Blocks fail independently of one another. Below one block the share is ``unreadable``.
    """
    p = np.asarray(require_between("unreadable", unreadable, 0.0, 1.0), dtype=float)
    n = np.maximum(np.asarray(require_not_negative("blocks", blocks), dtype=float), 1.0)
    p, n = np.broadcast_arrays(p, n)
    few = n * p < 1e-4  # here 1 - (nearly 1) would keep no digits, and three terms of the series do
    series = p * (n + 1) / 2 * (1 - p * (n - 1) / 3 * (1 - p * (n - 2) / 4))
    inner = np.where((p > 0) & (p < 1), p, 0.5)
    left = np.where(p < 1, (1 - inner) * -np.expm1(n * np.log1p(-inner)) / (n * inner), 0.0)
    lost = np.where(few, series, 1 - left)
    return scalar(lost)


@derived(label="share of the hits lost behind silent servers, no parity", unit="ratio", words=True,
         uses={"server_down": "storage.server_down"},
         formula="1 - (1 - server_down) * (1 - (1 - server_down) ** hit_blocks) / (hit_blocks * server_down)")
def prefix_lost_without_parity(server_down: Any, hit_blocks: Any) -> Any:
    """Without parity every block on a silent server is unreadable, and a prompt loses all that comes after it."""
    return prefix_lost(server_down, hit_blocks)


@derived(label="share of the hits lost behind silent servers, with parity", unit="ratio", words=True,
         formula="1 - (1 - unreadable_share) * (1 - (1 - unreadable_share) ** hit_blocks) / (hit_blocks * unreadable_share)")
def prefix_lost_with_parity(unreadable_share: Any, hit_blocks: Any) -> Any:
    """The same with the blocks that parity cannot give back."""
    return prefix_lost(unreadable_share, hit_blocks)


@derived(label="more prefill work without parity", unit="ratio", formula="prefix_lost_without_parity * hit_rate / (1 - hit_rate)")
def extra_prefill_without_parity(prefix_lost_without_parity: Any, hit_rate: Any) -> Any:
    """Lost hits are computed; at 96 % hits each lost point of hit rate is 25 % more prefill."""
    return _more_prefill(prefix_lost_without_parity, hit_rate)


@derived(label="more prefill work with parity", unit="ratio", formula="prefix_lost_with_parity * hit_rate / (1 - hit_rate)")
def extra_prefill_with_parity(prefix_lost_with_parity: Any, hit_rate: Any) -> Any:
    """The same with the stripes that parity cannot give back."""
    return _more_prefill(prefix_lost_with_parity, hit_rate)


def _more_prefill(lost: Any, hit_rate: Any) -> Any:
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    return lost * hit_rate / require_positive("1 - hit_rate", 1 - hit_rate)


@derived(label="bytes read per byte wanted, servers down as usual", unit="ratio", formula="1 + server_down * (data_shards - 1)",
         uses={"server_down": "storage.server_down"})
def read_amplification(server_down: Any, data_shards: Any) -> Any:
    """A block lies on one shard; if its server is silent, k others are read in its place."""
    require_between("server_down", server_down, 0.0, 1.0)
    return 1 + server_down * (require_positive("data_shards", data_shards) - 1)


@derived(label="bytes read per byte wanted while one server of a stripe is down", unit="ratio",
         formula="1 + (data_shards - 1) / (data_shards + parity_shards)")
def read_amplification_one_down(data_shards: Any, parity_shards: Any) -> Any:
    """In the stripes that the lost server belongs to: one shard in k + m is read k times."""
    require_positive("data_shards", data_shards)
    return 1 + (data_shards - 1) / (data_shards + require_not_negative("parity_shards", parity_shards))
