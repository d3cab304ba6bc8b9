"""The KV store: bytes written and read, capacity for a retention, servers, network.

Every number is a mean of a steady day. What peaks and repairs add is left out here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.cache.workloads import mixed_life, of_mix
from inside_deepinfer.facts import derived, require, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.arrays import scalar
from inside_deepinfer.facts.units import BITS_PER_BYTE, SECONDS_PER_DAY


@derived(label="output tokens per day", unit="token/day", formula="tokens_per_day / (1 + input_output_ratio)")
def output_tokens_per_day(tokens_per_day: Any, input_output_ratio: Any) -> Any:
    """The part of the day's tokens that the model writes."""
    require_positive("tokens_per_day", tokens_per_day)
    return tokens_per_day / (1 + require_positive("input_output_ratio", input_output_ratio))


@derived(label="new tokens per day", unit="token/day",
         formula="(tokens_per_day - output_tokens_per_day) * (1 - hit_rate) + output_tokens_per_day")
def new_tokens_per_day(tokens_per_day: Any, output_tokens_per_day: Any, hit_rate: Any) -> Any:
    """Tokens whose KV is computed for the first time: input misses and all output."""
    misses = 1 - require_between("hit_rate", hit_rate, 0.0, 1.0)
    return (tokens_per_day - output_tokens_per_day) * misses + output_tokens_per_day


@derived(label="KV bytes written per day", unit="B/day", formula="new_tokens_per_day * kv_bytes_per_token")
def stored_bytes_per_day(new_tokens_per_day: Any, kv_bytes_per_token: Any) -> Any:
    """What one cluster adds to the store in a day, before redundancy. Window state is apart: see state_bytes_per_day."""
    return new_tokens_per_day * require_positive("kv_bytes_per_token", kv_bytes_per_token)


@derived(label="requests per day", unit="request/day", formula="(tokens_per_day - output_tokens_per_day) / input_tokens")
def requests_per_day(tokens_per_day: Any, output_tokens_per_day: Any, input_tokens: Any) -> Any:
    """The day's input over the mean input of a request."""
    return (tokens_per_day - output_tokens_per_day) / require_positive("input_tokens", input_tokens)


@derived(label="window state written per day", unit="B/day", formula="requests_per_day * stored_state_bytes")
def state_bytes_per_day(requests_per_day: Any, stored_state_bytes: Any) -> Any:
    """One stored window state per request. Article 000 keeps it in CPU memory, so it is no part of the SSD's bytes."""
    return requests_per_day * require_positive("stored_state_bytes", stored_state_bytes)


@derived(label="store capacity that a retention asks for", unit="B", formula="stored_bytes_per_day * retention_days")
def store_bytes_for_retention(stored_bytes_per_day: Any, retention_days: Any) -> Any:
    """Everything written in the last days, each token once, before redundancy."""
    return stored_bytes_per_day * require_positive("retention_days", retention_days)


@derived(label="days from writing to dropping a token, generated agents and chat together", unit="day", words=True,
         formula="token-days kept over tokens written; agents kept retention_days and chat retention_chat_days after the last use")
def mixed_life_days(retention_days: Any, retention_chat_days: Any, block_tokens: Any) -> Any:
    """The store holds so many days of what is written; every use keeps a token anew, so it is longer than the retention."""
    return of_mix(mixed_life, retention_days, retention_chat_days, block_tokens)


@derived(label="share of the store that generated agents and chat fill", unit="ratio",
         formula="stored_bytes_per_day * mixed_life_days / store_capacity")
def mixed_share_of_store(stored_bytes_per_day: Any, mixed_life_days: Any, store_capacity: Any) -> Any:
    """One cluster, each kind kept for its own retention; above 1 where it does not fit."""
    return stored_bytes_per_day * mixed_life_days / require_positive("store_capacity", store_capacity)


@derived(label="days until the store is full", unit="day", formula="store_capacity / stored_bytes_per_day")
def store_fill_days(store_capacity: Any, stored_bytes_per_day: Any) -> Any:
    """How long one cluster could keep everything it writes."""
    return require_positive("store_capacity", store_capacity) / require_positive("stored_bytes_per_day", stored_bytes_per_day)


@derived(label="raw capacity of a store server", unit="B/server", formula="drives_per_server * drive_bytes",
         uses={"drive_bytes": "storage.drive_bytes"})
def server_raw_bytes(drives_per_server: Any, drive_bytes: Any) -> Any:
    """All drives of a server by their label."""
    return require_positive("drives_per_server", drives_per_server) * require_positive("drive_bytes", drive_bytes)


@derived(label="raw bytes per stored byte", unit="ratio", formula="(data_shards + parity_shards) / data_shards")
def erasure_overhead(data_shards: Any, parity_shards: Any) -> Any:
    """A stripe of k data and m parity shards survives any m lost shards and costs (k + m) / k."""
    require_positive("data_shards", data_shards)
    return (data_shards + require_not_negative("parity_shards", parity_shards)) / data_shards


@derived(label="store servers without redundancy", unit="server", formula="store_capacity / server_raw_bytes")
def store_servers_raw(store_capacity: Any, server_raw_bytes: Any) -> Any:
    """Servers whose drives add up to the stated capacity."""
    return require_positive("store_capacity", store_capacity) / require_positive("server_raw_bytes", server_raw_bytes)


@derived(label="store servers with erasure coding", unit="server", formula="store_servers_raw * erasure_overhead")
def store_servers(store_servers_raw: Any, erasure_overhead: Any) -> Any:
    """The same when the stated capacity is what users see and parity comes on top."""
    return store_servers_raw * erasure_overhead


@derived(label="KV bytes per request", unit="B", formula="input_tokens * kv_bytes_per_token")
def kv_bytes_per_request(input_tokens: Any, kv_bytes_per_token: Any) -> Any:
    """Compressed KV of a mean prompt: what prefill hands to decode. 68.5 MB for 77K tokens of V4.1-Flash."""
    return require_positive("input_tokens", input_tokens) * kv_bytes_per_token


@derived(label="cached KV read per prefill GPU", unit="B/s",
         formula="prefill_throughput_cached * hit_rate * kv_bytes_per_token")
def cached_read_per_prefill_gpu(prefill_throughput_cached: Any, hit_rate: Any, kv_bytes_per_token: Any) -> Any:
    """Bytes per second that the store must deliver to one prefill GPU so that hits cost no waiting."""
    return prefill_throughput_cached * require_between("hit_rate", hit_rate, 0.0, 1.0) * kv_bytes_per_token


@derived(label="KV sent from prefill to decode per prefill GPU", unit="B/s",
         formula="requests_per_prefill_gpu * kv_bytes_per_request")
def kv_sent_per_prefill_gpu(requests_per_prefill_gpu: Any, kv_bytes_per_request: Any) -> Any:
    """Every request's whole KV crosses once, cached part included. Window state is left out (under 5 % at 77K)."""
    return requests_per_prefill_gpu * kv_bytes_per_request


@derived(label="network load of a prefill machine", unit="bit/s per 8 GPUs",
         formula="gpus_per_machine * (cached_read_per_prefill_gpu + kv_sent_per_prefill_gpu) * 8",
         uses={"gpus_per_machine": "fleet.gpus_per_machine"})
def network_per_machine(gpus_per_machine: Any, cached_read_per_prefill_gpu: Any, kv_sent_per_prefill_gpu: Any) -> Any:
    """Cache reads in and KV out of a machine, both directions added."""
    return gpus_per_machine * (cached_read_per_prefill_gpu + kv_sent_per_prefill_gpu) * BITS_PER_BYTE


@derived(label="time to move the KV of a request", unit="s",
         formula="kv_bytes_per_request * 8 / (planned_network * 1e9 / gpus_per_machine)",
         uses={"planned_network": "fleet.network", "gpus_per_machine": "fleet.gpus_per_machine"})
def kv_transfer_time(kv_bytes_per_request: Any, planned_network: Any, gpus_per_machine: Any) -> Any:
    """One GPU's share of the planned network (claim fleet.network, Gbit/s per machine) moving one mean request."""
    share = require_positive("planned_network", planned_network) * 1e9 / require_positive("gpus_per_machine", gpus_per_machine)
    return kv_bytes_per_request * BITS_PER_BYTE / share


@derived(label="cached KV read by the whole cluster", unit="B/s",
         formula="prefill_gpus_from_throughput * cached_read_per_prefill_gpu")
def store_read_load(prefill_gpus_from_throughput: Any, cached_read_per_prefill_gpu: Any) -> Any:
    """Mean read load on the store."""
    return prefill_gpus_from_throughput * cached_read_per_prefill_gpu


@derived(label="store servers that reads ask for", unit="server", formula="store_read_load / server_read_speed")
def store_servers_for_reads(store_read_load: Any, server_read_speed: Any) -> Any:
    """At the stated read speed of a server (claim storage.server_spec: read, write)."""
    return store_read_load / require_positive("server_read_speed", server_read_speed)


@derived(label="store servers that writes ask for", unit="server",
         formula="stored_bytes_per_day / 86400 * erasure_overhead / server_write_speed")
def store_servers_for_writes(stored_bytes_per_day: Any, erasure_overhead: Any, server_write_speed: Any) -> Any:
    """At the stated write speed of a server, parity written too."""
    return stored_bytes_per_day / SECONDS_PER_DAY * erasure_overhead / require_positive("server_write_speed", server_write_speed)


@derived(label="store servers that the retention asks for", unit="server",
         formula="store_bytes_for_retention * erasure_overhead / server_raw_bytes")
def store_servers_for_retention(store_bytes_for_retention: Any, erasure_overhead: Any, server_raw_bytes: Any) -> Any:
    """Servers whose drives hold what one cluster writes within the retention, parity included."""
    return store_bytes_for_retention * erasure_overhead / require_positive("server_raw_bytes", server_raw_bytes)


@derived(label="store over what the retention asks for", unit="ratio", formula="store_capacity / store_bytes_for_retention")
def store_over_retention(store_capacity: Any, store_bytes_for_retention: Any) -> Any:
    """How many times over one cluster's retention fits into the store."""
    return store_capacity / require_positive("store_bytes_for_retention", store_bytes_for_retention)


@derived(label="what decides the number of store servers", unit="", words=True,
         formula="the largest of store_servers, store_servers_for_reads and store_servers_for_writes")
def store_binding(store_servers: Any, store_servers_for_reads: Any, store_servers_for_writes: Any) -> Any:
    """``capacity``, ``reads`` or ``writes``: a store needs the servers of the largest of the three."""
    asked = np.stack(np.broadcast_arrays(store_servers, store_servers_for_reads, store_servers_for_writes))
    found = np.array(["capacity", "reads", "writes"])[asked.argmax(axis=0)]
    return found if found.ndim else str(found)


@derived(label="planned network that the busier direction fills", unit="ratio", words=True,
         formula="the larger of cached_read_per_prefill_gpu and kv_sent_per_prefill_gpu, times the GPUs of a machine, over its line rate",
         uses={"planned_network": "fleet.network", "gpus_per_machine": "fleet.gpus_per_machine"})
def network_use_one_way(gpus_per_machine: Any, cached_read_per_prefill_gpu: Any, kv_sent_per_prefill_gpu: Any, planned_network: Any) -> Any:
    """A full-duplex link carries both directions at once, each at the line rate."""
    busier = np.maximum(cached_read_per_prefill_gpu, kv_sent_per_prefill_gpu)
    found = gpus_per_machine * busier * BITS_PER_BYTE / (require_positive("planned_network", planned_network) * 1e9)
    return scalar(found)


@derived(label="planned network that cache reads and hand-over fill", unit="ratio", formula="network_per_machine / (planned_network * 1e9)",
         uses={"planned_network": "fleet.network"})
def network_use(network_per_machine: Any, planned_network: Any) -> Any:
    """Both directions added, against the plan of claim fleet.network (Gbit/s per machine)."""
    return network_per_machine / (require_positive("planned_network", planned_network) * 1e9)


@derived(label="prompt tokens that can hit at most", unit="token", words=True,
         formula="largest multiple of block that is at most input_tokens - suffix, never below 0",
         uses={"block": "block_tokens", "suffix": "engine.usable_suffix"})
def longest_hit(input_tokens: Any, block: Any, suffix: Any) -> Any:
    """The block rule: whole blocks only, and the last ``suffix`` tokens are always computed. 76,800 of 77,000."""
    require_positive("input_tokens", input_tokens)
    hit = np.maximum(0, (np.asarray(input_tokens) - suffix) // require_positive("block", block)) * np.asarray(block)
    return hit if hit.ndim else int(hit)


@derived(label="prompt tokens before the suffix that is always computed", unit="token", formula="input_tokens - suffix",
         uses={"suffix": "engine.usable_suffix"})
def hit_limit(input_tokens: Any, suffix: Any) -> Any:
    """The limit that article 001 states: L - 134."""
    require(np.asarray(input_tokens) > suffix, "input_tokens", input_tokens, f"more than {suffix:g} tokens for any hit")
    return input_tokens - suffix
