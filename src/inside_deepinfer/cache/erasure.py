"""What parity buys a KV store: data loss per year, blocks that cannot be read right now, and reads while servers are down.

A lost block is no lost data but a miss: it is computed again. So the chance of loss matters less than the share of blocks that
cannot be read at a given moment, and that is where parity pays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.units import DAYS_PER_YEAR, SECONDS_PER_DAY

SECONDS_PER_YEAR = DAYS_PER_YEAR * SECONDS_PER_DAY


def mean_years_to_loss(data_shards: Any, parity_shards: Any, loss_rate: Any, repair_seconds: Any) -> Any:
    """Mean time until more than m shards of one stripe are gone at once.

    A birth-death chain over the number of lost shards: each of the k + m - i shards left is lost at ``loss_rate`` per year,
    each of the i lost ones is repaired within ``repair_seconds`` on average, all at the same time. Failures are independent;
    a rack or a software fault that takes several servers at once is left out, which makes the result look better.

    Returns:
        Years; shape of the broadcast arguments.
    """
    k, m, rate, repair = (np.asarray(x, dtype=float) for x in (data_shards, parity_shards, loss_rate, repair_seconds))
    require_positive("loss_rate", rate)
    require_positive("repair_seconds", repair)
    require((k >= 1) & (k == np.floor(k)), "data_shards", data_shards, "a whole number of at least 1")
    require((m >= 0) & (m == np.floor(m)), "parity_shards", parity_shards, "a whole number of at least 0")
    repaired = SECONDS_PER_YEAR / repair  # repairs per year and lost shard
    total = np.zeros(np.broadcast(k, m, rate, repair).shape)
    here = np.zeros_like(total)  # mean time to go from i to i + 1 lost shards
    for lost in range(int(m.max()) + 1):
        leave = np.maximum(k + m - lost, 1) * rate
        here = 1 / leave + lost * repaired / leave * here
        total = total + np.where(lost <= m, here, 0.0)
    return total if total.ndim else float(total)


@derived(label="shards lost per shard and year", unit="1/year", formula="disk_failures + server_failures",
         uses={"disk_failures": "storage.disk_failures", "server_failures": "storage.server_failures"})
def shard_loss_rate(disk_failures: Any, server_failures: Any) -> Any:
    """A shard is gone when its drive or its server is."""
    return require_not_negative("disk_failures", disk_failures) + require_not_negative("server_failures", server_failures)


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


@derived(label="mean years until a stripe loses data", unit="year", words=True,
         formula="birth-death chain over lost shards: loss at shard_loss_rate each, repair within store_repair_time each")
def stripe_years_to_loss(data_shards: Any, parity_shards: Any, shard_loss_rate: Any, store_repair_time: Any) -> Any:
    """One group of k + m drives on as many servers."""
    return mean_years_to_loss(data_shards, parity_shards, shard_loss_rate, store_repair_time)


@derived(label="groups of drives in the store", unit="group",
         formula="store_servers * drives_per_server / (data_shards + parity_shards)")
def store_groups(store_servers: Any, drives_per_server: Any, data_shards: Any, parity_shards: Any) -> Any:
    """Disjoint groups of k + m drives. Placement over all drives would give more and smaller groups."""
    return store_servers * drives_per_server / (require_positive("data_shards", data_shards) + parity_shards)


@derived(label="chance that the store loses a group within a year", unit="ratio", words=True,
         formula="1 - exp(-store_groups / stripe_years_to_loss)")
def store_loss_per_year(store_groups: Any, stripe_years_to_loss: Any) -> Any:
    """Some group of drives loses more shards than it has parity. What is lost is computed again when asked for."""
    return -np.expm1(-require_positive("store_groups", store_groups) / require_positive("stripe_years_to_loss",
                                                                                     stripe_years_to_loss))


@derived(label="mean years until the store loses a group of drives", unit="year", formula="stripe_years_to_loss / store_groups")
def store_years_to_loss(stripe_years_to_loss: Any, store_groups: Any) -> Any:
    """The same as :func:`store_loss_per_year` in years: groups fail independently."""
    return stripe_years_to_loss / require_positive("store_groups", store_groups)


@derived(label="share of blocks that cannot be read now", unit="ratio", words=True,
         formula="server_down times the chance that at least parity_shards of the stripe's other servers are down too",
         uses={"server_down": "storage.server_down"})
def unreadable_share(data_shards: Any, parity_shards: Any, server_down: Any) -> Any:
    """A block lies on one shard; if its server is silent, any k of the others give it back. Servers fail independently."""
    down = np.asarray(require_between("server_down", server_down, 0.0, 1.0), dtype=float)
    others = np.asarray(data_shards, dtype=float) + parity_shards - 1
    parity = np.asarray(parity_shards, dtype=float)
    odds = np.divide(down, 1 - down, out=np.zeros_like(down), where=down < 1)
    exactly = (1 - down) ** others + 0.0 * parity  # chance that 0 of the others are down, then 1, 2, ...
    too_many = np.zeros_like(exactly)
    for lost in range(int(np.max(others)) + 1):
        too_many = too_many + np.where((lost >= parity) & (lost <= others), exactly, 0.0)
        exactly = exactly * np.maximum(others - lost, 0) / (lost + 1) * odds
    share = down * np.where(down < 1, np.minimum(too_many, 1.0), 1.0)
    return share if share.ndim else float(share)


@derived(label="more prefill work if down servers' blocks are computed again", unit="ratio",
         formula="server_down * hit_rate / (1 - hit_rate)", uses={"server_down": "storage.server_down"})
def extra_prefill_without_parity(server_down: Any, hit_rate: Any) -> Any:
    """Without parity the blocks of silent servers are misses: at 96 % hits each lost point of hit rate is 25 % more prefill."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    return require_between("server_down", server_down, 0.0, 1.0) * hit_rate / require_positive("1 - hit_rate", 1 - hit_rate)


@derived(label="more prefill work with parity", unit="ratio", formula="unreadable_share * hit_rate / (1 - hit_rate)")
def extra_prefill_with_parity(unreadable_share: Any, hit_rate: Any) -> Any:
    """The same with the stripes that parity cannot give back."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    return unreadable_share * hit_rate / require_positive("1 - hit_rate", 1 - hit_rate)


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
