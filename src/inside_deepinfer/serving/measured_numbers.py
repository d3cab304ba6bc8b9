"""What chapter 7 says about the measured card, number by number; the run is fact ``measured.run``."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from inside_deepinfer.facts import derived

_RUN = {"run": "measured.run"}


def _card() -> Any:
    from inside_deepinfer.serving import measured_card  # imports pandas, which quick commands do without

    return measured_card


def _uneven() -> Any:
    from inside_deepinfer.serving import measured_uneven  # as above

    return measured_uneven


def _median(values: Iterable[float]) -> float:
    return float(median(values))


def large_product_rate(run: str, precision: str, best: bool = False) -> float:
    """FLOP per second of the large square product: median of the repeats, or the best of them."""
    from inside_deepinfer.facts.gpu_runs import gpu_run

    row = next(row for row in gpu_run(run, "matmul").rows if row["precision"] == precision)
    return float(row["flop"] / row["seconds_min" if best else "seconds"])


def copy_bandwidth(run: str) -> float:
    """Bytes per second of copying the largest buffer, read and written together."""
    from inside_deepinfer.facts.gpu_runs import gpu_run

    largest = max((row for row in gpu_run(run, "bandwidth").rows if row["what"] == "copy"), key=lambda row: row["bytes"])
    return float(largest["bytes_moved"] / largest["seconds"])


@derived(label="measured bandwidth of reading", unit="B/s", words=True, uses=_RUN, formula="largest buffer / median time")
def measured_read_bandwidth(run: str) -> float:
    """A sum over 8 GiB."""
    return _card().read_bandwidth(run)


@derived(label="measured bandwidth of copying", unit="B/s", words=True, uses=_RUN, formula="2 * largest buffer / median time")
def measured_copy_bandwidth(run: str) -> float:
    """Bytes read and bytes written are both counted."""
    return copy_bandwidth(run)


@derived(label="measured rate of a large BF16 product, best repeat", unit="FLOP/s", words=True, uses=_RUN,
         formula="2 * 8192^3 / shortest repeat of ten products")
def measured_bf16_best(run: str) -> float:
    """The first moments of a product, it seems: see the median."""
    return large_product_rate(run, "bf16", best=True)


@derived(label="measured rate of a large BF16 product, median", unit="FLOP/s", words=True, uses=_RUN,
         formula="2 * 8192^3 / median of the repeats of ten products")
def measured_bf16_rate(run: str) -> float:
    """What remains when products follow each other."""
    return large_product_rate(run, "bf16")


@derived(label="measured rate of a large FP8 product, median", unit="FLOP/s", words=True, uses=_RUN,
         formula="2 * 8192^3 / median of the repeats of ten products")
def measured_fp8_rate(run: str) -> float:
    """As in BF16."""
    return large_product_rate(run, "fp8")


@derived(label="turning point in BF16", unit="token/expert", words=True, uses=_RUN,
         formula="fitted compute rate * time to read the weights / FLOP per token")
def measured_turning_bf16(run: str) -> float:
    """Tokens per expert at which computing takes as long as reading."""
    return _card().turning_point(run, "bf16")


@derived(label="turning point in FP8", unit="token/expert", words=True, uses=_RUN,
         formula="fitted compute rate * time to read the weights / FLOP per token")
def measured_turning_fp8(run: str) -> float:
    """Half the bytes, but read at a lower rate, and twice the compute rate."""
    return _card().turning_point(run, "fp8")


@derived(label="fixed time of an expert", unit="s", words=True, uses=_RUN,
         formula="2 * time in FP8 - time in BF16, medians up to 64 tokens")
def measured_expert_fixed_time(run: str) -> float:
    """BF16 has twice the bytes; what does not double is fixed."""
    return _card().fixed_and_rate(run)[0]


@derived(label="rate at which an expert's bytes come after its fixed time", unit="B/s", words=True, uses=_RUN,
         formula="bytes in BF16 less those in FP8 / times in BF16 less those in FP8, medians up to 64 tokens")
def measured_expert_byte_rate(run: str) -> float:
    """What a product grouped over many experts could come near."""
    return _card().fixed_and_rate(run)[1]


@derived(label="measured time per kernel, graph replay", unit="s", words=True, uses=_RUN,
         formula="slope of the time over the number of tiny kernels")
def measured_graph_launch(run: str) -> float:
    """Captured once, replayed."""
    return _card().launch_time(run, "graph")


@derived(label="measured time per kernel, launched one by one", unit="s", words=True, uses=_RUN,
         formula="slope of the time over the number of tiny kernels")
def measured_eager_launch(run: str) -> float:
    """From Python, so mostly the host's time."""
    return _card().launch_time(run, "eager")


@derived(label="measured rate of an exchange between two cards", unit="B/s", words=True, uses=_RUN,
         formula="second of the two numbers fitted to time against size")
def measured_link_rate(run: str) -> float:
    """One direction, large messages."""
    return _card().link(run).rate


@derived(label="measured fixed time of an exchange between two cards", unit="s", words=True, uses=_RUN,
         formula="first of the two numbers fitted to time against size")
def measured_link_latency(run: str) -> float:
    """The host's launch is in it."""
    return _card().link(run).latency


@derived(label="median error of the predicted expert layers", unit="ratio", words=True, uses=_RUN,
         formula="median of |predicted / measured - 1| over all layers")
def measured_layer_error(run: str) -> float:
    """Fourteen layers: two precisions, seven group sizes."""
    return _card().median_error(_card().predict_layers(run))


@derived(label="error of the worst predicted expert layer", unit="ratio", words=True, uses=_RUN,
         formula="predicted / measured - 1 of the layer with the largest error")
def measured_worst_layer_error(run: str) -> float:
    """Negative where the layer takes longer than predicted."""
    return _card().worst(_card().predict_layers(run)).error


@derived(label="tokens per expert of the worst predicted layer", unit="token/expert", words=True, uses=_RUN,
         formula="mean tokens per expert of the layer with the largest error")
def measured_worst_layer_tokens(run: str) -> float:
    """Near the turning point."""
    found = _card().worst(_card().predict_layers(run))
    return _card().tokens_per_expert(run, found.precision, found.ep)


@derived(label="error of that layer from measured experts", unit="ratio", words=True, uses=_RUN,
         formula="sum of the measured times of single experts, between sizes / measured layer - 1")
def measured_worst_layer_rest(run: str) -> float:
    """What is left of the worst error when measured times replace the fitted curve."""
    found = _card().worst(_card().predict_layers(run))
    return next(entry.error for entry in _card().layers_from_measured_experts(run)
                if (entry.precision, entry.ep) == (found.precision, found.ep))


@derived(label="error of that layer from experts with its own counts", unit="ratio", words=True, uses=_RUN,
         formula="sum of the times of single experts, measured with the layer's token counts / measured layer - 1")
def measured_worst_layer_own_counts(run: str) -> float:
    """What is left when each expert is measured alone with exactly its tokens."""
    return _uneven().of_worst(run, _uneven().layers_from_own_counts(run)).error


@derived(label="what padding to 64 tokens changes in that layer", unit="ratio", words=True, uses=_RUN,
         formula="time with each count raised to a multiple of 64 / time as it is - 1")
def measured_padded_layer(run: str) -> float:
    """More to compute, and less time."""
    return _uneven().padded(run, 64)


@derived(label="clock under large FP8 products", unit="Hz", words=True, uses=_RUN,
         formula="median of the windows from half a second on")
def measured_clock_under_load(run: str) -> float:
    """Read by nvidia-smi every 20 ms while the products ran."""
    return _median(hertz for hertz, _ in _uneven().clock(run, "fp8", after=0.5))


@derived(label="clock at the start of large FP8 products", unit="Hz", words=True, uses=_RUN,
         formula="median of the first tenth of a second")
def measured_clock_at_start(run: str) -> float:
    """From a card at rest."""
    return _median(hertz for hertz, _ in _uneven().clock(run, "fp8", before=0.15))


@derived(label="most that gathering costs", unit="ratio", words=True, uses=_RUN,
         formula="largest of gathered / contiguous - 1 over the measured numbers of queries")
def measured_gather_penalty(run: str) -> float:
    """Same kernel, same bytes, entries scattered over 6.9 GB."""
    return max(_card().gather_penalty(run).values())


@derived(label="rate of gathered reads at the rows of the step", unit="B/s", words=True, uses=_RUN,
         formula="bytes / time of the gathered reads, between the measured numbers of queries, at rows_per_step")
def measured_gather_rate(run: str, rows_per_step: Any) -> Any:
    """With one program per query, as our kernel works; the ends of the measured range stand for what lies outside."""
    import numpy as np

    from inside_deepinfer.facts.gpu_runs import gpu_run

    rows = [row for row in gpu_run(run, "gather").rows if row["what"] == "gathered"]
    queries, rates = (np.array([value(row) for row in rows]) for value in (
        lambda row: row["queries"], lambda row: row["bytes_moved"] / row["seconds"]))
    found = np.interp(np.log(np.asarray(rows_per_step, dtype=float)), np.log(queries), rates)
    return float(found) if np.ndim(found) == 0 else found


@derived(label="rate at which additional gathered queries came in", unit="B/s", words=True, uses=_RUN,
         formula="difference in bytes / difference in time of the two largest measurements")
def measured_gather_end_rate(run: str) -> float:
    """Once enough queries keep the card busy."""
    return _card().gather_rate_at_the_end(run)
