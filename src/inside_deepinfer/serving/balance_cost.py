"""What uneven experts cost a decode step, what chance alone makes uneven, and how far both go towards "80 % of ideal".

A step waits in every layer for the GPU with the most rows, so the part of the step that follows the experts' rows is longer by
the ratio slowest over mean. Weights are read whole once a single row needs them, so reading hardly follows the rows.
"""

from __future__ import annotations

from functools import lru_cache
from math import erf, sqrt
from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require, require_between, require_not_negative, require_positive
from inside_deepinfer.facts.arrays import scalar
from inside_deepinfer.model.formats import flop_per_mac
from inside_deepinfer.model.parts import parts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.serving import expert_balance as eb
from inside_deepinfer.serving.hbm import slots_read
from inside_deepinfer.serving.step_budget import counted_step_time

SIMULATED_STEPS = 20  # of one layer; enough for two digits of the unevenness

# ---- chance alone ---------------------------------------------------------------------------------------------------------

@lru_cache(maxsize=64)
def _largest_of(count: int) -> float:
    """Mean of the largest of ``count`` standard normal deviates: z over the density of the maximum, integrated."""
    if count == 1:
        return 0.0
    z = np.linspace(-9, 9, 2001)
    below = np.array([0.5 * (1 + erf(at / sqrt(2))) for at in z.tolist()])
    return float(np.trapezoid(z * np.gradient(below**count, z), z))


@derived(label="largest of as many normal deviates as GPUs, mean", unit="ratio", words=True,
         formula="mean of the largest of ep independent standard normal deviates")
def largest_deviation(ep: Any) -> Any:
    """By how many standard deviations the busiest of ``ep`` equal GPUs lies above the mean; 0 for one GPU."""
    require(np.asarray(require_positive("ep", ep)) % 1 == 0, "ep", ep, "a whole number of GPUs")
    found = np.vectorize(lambda count: _largest_of(int(count)), otypes=[float])(ep)
    return float(found) if found.ndim == 0 else found


@derived(label="expert choices that a GPU receives per layer and step", unit="token/GPU", formula="rows_per_step * active_experts")
def choices_per_gpu(rows_per_step: Any, active_experts: Any) -> Any:
    """Mean over the GPUs: each sends out as many as it gets."""
    return rows_per_step * active_experts


@derived(label="slowest over mean by chance, every row on its own", unit="ratio",
         formula="1 + largest_deviation / choices_per_gpu ** 0.5")
def chance_imbalance(largest_deviation: Any, choices_per_gpu: Any) -> Any:
    """What is left where every expert is equally popular: choices fall on GPUs as dice do."""
    return 1 + largest_deviation / require_positive("choices_per_gpu", choices_per_gpu) ** 0.5


@derived(label="slowest over mean by chance, rows of a sequence alike", unit="ratio",
         formula="1 + largest_deviation / (batch * active_experts) ** 0.5")
def chance_imbalance_alike(largest_deviation: Any, batch: Any, active_experts: Any) -> Any:
    """As above, but the rows of a sequence choose the same experts, so that only sequences are independent."""
    return 1 + largest_deviation / (require_positive("batch", batch) * active_experts) ** 0.5


@derived(label="slowest over mean by chance in prefill, every token on its own", unit="ratio", words=True,
         uses={"gpus": "prefill.gpus"}, formula="1 + largest of as many deviates as GPUs / (prefill_chunk * active_experts) ** 0.5")
def chance_imbalance_prefill(gpus: Any, prefill_chunk: Any, active_experts: Any) -> Any:
    """A chunk has so many tokens that chance leaves next to nothing."""
    return 1 + _largest_of(int(gpus)) / (require_positive("prefill_chunk", prefill_chunk) * active_experts) ** 0.5


@derived(label="slowest over mean by chance in the replay", unit="ratio", words=True,
         uses={"window": "esft.window", "active": "esft.active"},
         formula="1 + largest of balance_gpus deviates / (window * active / balance_gpus) ** 0.5")
def replay_chance(balance_gpus: Any, window: Any, active: Any) -> Any:
    """What equally popular experts would leave in steps as small as those of the real counts."""
    return 1 + largest_deviation(balance_gpus) / (window * active / np.asarray(balance_gpus)) ** 0.5


@derived(label="slowest over mean by chance, every step split among copies that form a ring", unit="ratio", words=True,
         formula="20 simulated steps of equally popular experts, each split over its copies by a linear program, slowest over mean")
def chance_imbalance_split(routed_experts: Any, active_experts: Any, routed_rows: Any, ep: Any, redundant_experts: Any) -> Any:
    """What a splitter that sees the step could leave of chance; the same steps split evenly are close to chance_imbalance.

    Each GPU holds a copy of an expert of the next one. Where the released policy puts the copies, some GPUs can hand rows to one other
    only, and more stays uneven.
    """
    require(np.asarray(require_positive("ep", ep)) % 1 == 0, "ep", ep, "a whole number of GPUs")
    found = np.vectorize(_split_by_step, otypes=[float])(routed_experts, active_experts * np.asarray(routed_rows), ep, redundant_experts)
    return scalar(found)


@lru_cache(maxsize=32)
def _split_by_step(experts: float, choices: float, gpus: float, copies_per_gpu: float) -> float:
    """Mean over steps of the best split's slowest GPU over the mean."""
    experts, gpus = int(experts), int(gpus)
    if experts % gpus or copies_per_gpu > min(experts // gpus, gpus - 1):
        raise NotPossible(f"{experts} experts and {copies_per_gpu:g} copies a GPU do not form a ring of {gpus} GPUs")
    placement = eb.ring(1, experts, gpus, int(copies_per_gpu))
    loads = np.random.default_rng(0).multinomial(round(choices), np.full(experts, 1 / experts), size=(SIMULATED_STEPS, 1))
    return float(eb.best_split(loads, placement).mean() / (loads.sum(axis=2).mean() / gpus))


# ---- what it costs --------------------------------------------------------------------------------------------------------

@derived(label="busiest GPU's rows above the mean", unit="ratio", formula="imbalance - 1")
def imbalance_excess(imbalance: Any) -> Any:
    """What a step would be longer if all of it followed the busiest GPU."""
    return check_imbalance(imbalance) - 1


def check_imbalance(imbalance: Any) -> Any:
    """``imbalance`` as given, if no element is below 1: the slowest GPU is never below the mean."""
    require(np.asarray(require_positive("imbalance", imbalance)) >= 1, "imbalance", imbalance, "at least 1")
    return imbalance


@derived(label="FP8-equivalent FLOP of a row's routed experts", unit="FLOP/token", words=True,
         formula="active experts of all layers of the trunk, weighted by their number format")
def routed_flops_per_row(model: str) -> float:
    """The part of a row's matrix products that lands on other GPUs."""
    return sum(part.parameters * part.share_per_token * flop_per_mac(part.format) for part in parts(load_shape(model))
               if part.stage == "backbone" and part.routed)


@derived(label="time to read weights on the slowest GPU", unit="s", words=True, uses={"efficiency": "weight_read_efficiency"},
         formula="time_weights + the slots that imbalance times as many rows touch more, read at the same speed")
def slowest_time_weights(time_weights: Any, imbalance: Any, routed_experts: Any, active_experts: Any, routed_rows: Any, ep: Any,
                         redundant_experts: Any, expert_slots_read: Any, moe_layers: Any, expert_bytes: Any, card_bandwidth: Any,
                         efficiency: Any) -> Any:
    """At EP64 a step touches every slot in any case, so more rows read nothing more."""
    check_imbalance(imbalance)
    slots = routed_experts + redundant_experts * np.asarray(ep, dtype=float)
    more = slots_read(int(routed_experts), active_experts, slots, routed_rows * imbalance) / ep - expert_slots_read
    return time_weights + more * moe_layers * expert_bytes / (card_bandwidth * require_between("efficiency", efficiency, 1e-6, 1.0))


@derived(label="time of matrix products on the slowest GPU", unit="s", uses={"efficiency": "product_efficiency"},
         formula="time_gemm + (imbalance - 1) * rows_per_step * routed_flops_per_row / (card_fp8_peak * efficiency)")
def slowest_time_gemm(time_gemm: Any, imbalance: Any, rows_per_step: Any, routed_flops_per_row: Any, card_fp8_peak: Any,
                      efficiency: Any) -> Any:
    """Only the routed experts get more rows; attention, shared experts and head belong to the GPU's own sequences."""
    check_imbalance(imbalance)
    return time_gemm + (imbalance - 1) * rows_per_step * routed_flops_per_row / (card_fp8_peak * efficiency)


@derived(label="time of dispatch and combine on the slowest GPU", unit="s",
         formula="time_exchange + (imbalance - 1) * exchange_bytes_per_step / (card_link_bandwidth * efficiency)",
         uses={"efficiency": "exchange_efficiency"})
def slowest_time_exchange(time_exchange: Any, imbalance: Any, exchange_bytes_per_step: Any, card_link_bandwidth: Any,
                          efficiency: Any) -> Any:
    """The slowest GPU receives and sends back more rows over its link; latencies stay."""
    check_imbalance(imbalance)
    return time_exchange + (imbalance - 1) * exchange_bytes_per_step / (card_link_bandwidth * efficiency)


@derived(label="counted step time with uneven experts", unit="s", words=True,
         formula="counted_step_time with the times of the slowest GPU")
def uneven_step_time(slowest_time_weights: Any, time_kv: Any, slowest_time_gemm: Any, time_attention: Any,
                     slowest_time_exchange: Any, time_launch: Any, overlap: Any) -> Any:
    """Every layer waits for its slowest GPU."""
    return counted_step_time(slowest_time_weights, time_kv, slowest_time_gemm, time_attention, slowest_time_exchange, time_launch,
                             overlap)


@derived(label="longer step through uneven experts", unit="ratio", formula="uneven_step_time / counted_step_time - 1")
def imbalance_cost(uneven_step_time: Any, counted_step_time: Any) -> Any:
    """Relative; at most ``imbalance - 1``, which it would be if the whole step followed the experts' rows."""
    return uneven_step_time / counted_step_time - 1


# ---- 80 % of ideal --------------------------------------------------------------------------------------------------------

@derived(label="share of ideal if the whole step followed the slowest GPU", unit="ratio", formula="1 / imbalance")
def share_left_by_experts(imbalance: Any) -> Any:
    """A lower bound: most of a step does not follow the experts' rows."""
    return 1 / check_imbalance(imbalance)


@derived(label="slowest over mean of a group's own rows", unit="ratio", uses={"spread": "balance.rows_spread"},
         formula="1 + largest_deviation * spread / batch ** 0.5")
def lockstep_imbalance(largest_deviation: Any, spread: Any, batch: Any) -> Any:
    """All GPUs of an instance step together, so the one whose sequences bring the most rows sets the pace."""
    return 1 + largest_deviation * require_not_negative("balance.rows_spread", spread) / require_positive("batch", batch) ** 0.5


@derived(label="share of ideal left by experts and lock step", unit="ratio", formula="1 / (imbalance * lockstep_imbalance)")
def share_left_by_lockstep(imbalance: Any, lockstep_imbalance: Any) -> Any:
    """A lower bound as well: both are taken to lengthen the whole step."""
    return 1 / (check_imbalance(imbalance) * lockstep_imbalance)


@derived(label="filled share of slots that would explain the rest", unit="ratio", uses={"total": "eplb.total"}, words=True,
         formula="total / share_left_by_lockstep, at most 1")
def filled_share_that_explains(total: Any, share_left_by_lockstep: Any) -> Any:
    """If nothing else were lost, this share of the decode slots would have to be busy; 1 where the rest is nothing."""
    return scalar(np.minimum(total / np.asarray(share_left_by_lockstep), 1.0))


@derived(label="spread of rows that would explain the rest alone", unit="ratio", uses={"total": "eplb.total"}, words=True,
         formula="(1 / (total * imbalance) - 1) * batch ** 0.5 / largest_deviation, at least 0")
def rows_spread_that_explains(total: Any, imbalance: Any, batch: Any, largest_deviation: Any) -> Any:
    """Spread of rows per sequence at which lock step alone would make the other part of the loss; 0 where experts make all of it."""
    rest = np.maximum(1 / (require_positive("eplb.total", total) * np.asarray(check_imbalance(imbalance))) - 1, 0.0)
    if np.any(np.asarray(largest_deviation) <= 0):
        raise NotPossible("one GPU waits for no other, so no spread of rows explains a loss")
    return scalar(rest * require_positive("batch", batch) ** 0.5 / largest_deviation)


@derived(label="slowest over mean of prefill, least of the reported range", unit="ratio", words=True,
         uses={"reported": "eplb.prefill_ratio"}, formula="the smaller of the two reported ends")
def prefill_imbalance_least(reported: Any) -> Any:
    """1.045 in article 001."""
    return float(np.min(reported))


@derived(label="slowest over mean of prefill, most of the reported range", unit="ratio", words=True,
         uses={"reported": "eplb.prefill_ratio"}, formula="the larger of the two reported ends")
def prefill_imbalance_most(reported: Any) -> Any:
    """1.074 in article 001."""
    return float(np.max(reported))


@derived(label="slowest over mean of prefill, middle of the reported range", unit="ratio", words=True,
         uses={"reported": "eplb.prefill_ratio"}, formula="mean of the two reported ends")
def prefill_imbalance(reported: Any) -> Any:
    """1.045 to 1.074 in article 001."""
    return float(np.mean(reported))


@derived(label="share of ideal of both pools together", unit="ratio", formula="(pd_ratio + 1) / (pd_ratio * prefill_imbalance + imbalance)")
def share_left_in_both_pools(pd_ratio: Any, prefill_imbalance: Any, imbalance: Any) -> Any:
    """Each pool needs its ratio times as many GPUs for the same requests; a lower bound as the others."""
    return (require_positive("pd_ratio", pd_ratio) + 1) / (pd_ratio * prefill_imbalance + check_imbalance(imbalance))


@derived(label="reported speed in service over the benchmark", unit="ratio", formula="service / benchmark",
         uses={"service": "decode.throughput", "benchmark": "decode.benchmark"})
def service_over_benchmark(service: Any, benchmark: Any) -> Any:
    """Two decode speeds of the articles; 80 % of ideal is not their quotient."""
    return service / require_positive("benchmark", benchmark)
