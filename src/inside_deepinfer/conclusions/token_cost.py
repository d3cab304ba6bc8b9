"""What chapter 6 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.model.shape import load_shape
from inside_deepinfer.studies.machine_world import CONTEXTS, published_counts

V3, V4 = "deepseek-v3", "deepseek-v4-flash"


@conclusion("token-cost.experts-are-the-model", "More than 98 percent of the backbone's parameters are routed experts.")
def _experts_are_the_model() -> bool:
    return catalogue.value("routed_parameters") > 0.98 * catalogue.value("backbone_parameters")


@conclusion("token-cost.one-in-thirty-four", "An output token multiplies with about one in thirty-four of the backbone's parameters.")
def _one_in_thirty_four() -> bool:
    return round(catalogue.value("backbone_parameters") / catalogue.value("active_parameters_decode")) == 34


@conclusion("token-cost.prompt-half", "A prompt token multiplies with half as many parameters as an output token.")
def _prompt_half() -> bool:
    return 0.48 < catalogue.value("active_parameters_prefill") / catalogue.value("active_parameters_decode") < 0.52


@conclusion("token-cost.context-is-cheap", "From a thousand tokens of context to a million, the weighted work of an output token grows "
                                           "by less than a third; in plain FLOP it grows by more than half, because the index "
                                           "scores are in FP4, which weighs least.")
def _context_is_cheap() -> bool:
    weighted, plain = (np.divide(*catalogue.value(name, context=np.array([CONTEXTS[-1], CONTEXTS[0]])))
                       for name in ("decode_flops_per_token", "decode_flops_plain"))
    return 1 < weighted < 4 / 3 and 1.5 < plain < 2


@conclusion("token-cost.keys-win", "At a million tokens, more than three quarters of what a sequence reads in a step are index keys.")
def _keys_win() -> bool:
    keys, rest = (catalogue.value(name, context=CONTEXTS[-1]) for name in ("index_read_bytes", "kv_read_bytes_per_step"))
    return keys / rest > 0.75


@conclusion("token-cost.seventy-times", "V3 kept more than seventy times as many bytes per token of context, and V4-Flash about four "
                                        "times as many.")
def _seventy_times() -> bool:
    ours = catalogue.value("kv_bytes_per_token")
    ratios = {model: catalogue.value("kv_bytes_per_token", model=model) / ours for model in (V3, V4)}
    return 70 < ratios[V3] < 90 and 3.5 < ratios[V4] < 4.5


@conclusion("token-cost.same-arithmetic", "At 77,000 tokens of context V4-Flash and V4.1-Flash need about the same arithmetic for an "
                                          "output token, and V3 more than sixty times as much; in plain FLOP, where BF16 "
                                          "weighs no more than FP8, it is more than thirty-five times.")
def _same_arithmetic() -> bool:
    context = load_facts().number("scenario.context")
    ours, older, oldest = (catalogue.value("decode_flops_per_token", model=model, context=context)
                           for model in ("deepseek-v4.1-flash", V4, V3))
    plain = catalogue.value("decode_flops_plain", model=V3, context=context) / catalogue.value("decode_flops_plain", context=context)
    return context == 77_000 and abs(older / ours - 1) < 0.1 and oldest > 60 * ours and 35 < plain < 40


@conclusion("token-cost.counts-hold", "Every count of parameters comes within three percent of the published one, and every count "
                                      "of bytes within a tenth of a percent.")
def _counts_hold() -> bool:
    return all(abs(row.error) < (1e-3 if row.unit.startswith("B") else 0.03) for row in published_counts())


@conclusion("token-cost.mistake-of-keys", "Counting an index key in each of the eight layers that search adds almost a third.")
def _mistake_of_keys() -> bool:
    ratio = catalogue.value("kv_bytes_with_keys_in_every_search") / catalogue.value("kv_bytes_per_token")
    return 1.28 < ratio < 4 / 3 and len(load_shape("deepseek-v4.1-flash").index.layers) == 8


@conclusion("token-cost.three-and-one", "Three of these layers join two tokens into one entry, and the fourth keeps every token.")
def _three_and_one() -> bool:
    shape = load_shape("deepseek-v4.1-flash")
    return [shape.ratios[layer] for layer in shape.kv_layers] == [2, 2, 2, 1]
