"""Counts from a shape alone, against the published value of each."""

from __future__ import annotations

import numpy as np
import pytest

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, load_facts
from inside_deepinfer.model.counts import parameters_by_class
from inside_deepinfer.model.flops import decode_flops_by_class, prefill_flops
from inside_deepinfer.model.formats import bytes_per_value, flop_per_mac
from inside_deepinfer.model.shape import load_shape, model_ids
from inside_deepinfer.model.weights import bytes_by_class, redundant_per_gpu

V41, V4, V3 = "deepseek-v4.1-flash", "deepseek-v4-flash", "deepseek-v3"


def rounds_to(value: float, published: float, step: float) -> bool:
    return abs(value - published) <= step / 2 * (1 + 1e-9)


@pytest.mark.parametrize(("name", "model", "published", "step", "source"), [
    ("backbone_parameters", V41, 551.88e9, 0.01e9, "public config; the report says 552B"),
    ("engram_parameters", V41, 196.61e9, 0.01e9, "public config; the report says 196B"),
    ("draft_parameters", V41, 14.2e9, 0.1e9, "public config"),
    ("active_parameters_decode", V41, 16.13e9, 0.01e9, "public config; the report says 16B"),
    ("active_parameters_prefill", V41, 7.90e9, 0.01e9, "public config; the report says 8B"),
    ("expert_parameters", V41, 35_389_440, 1, "public config"),
    ("expert_bytes", V41, 18.80e6, 0.01e6, "public checkpoints: 18.8 MB"),
    ("routed_expert_bytes", V41, 288.8e9, 0.1e9, "public checkpoints: 289 GB in 15,360 experts"),
    ("engram_table_bytes", V41, 202.8e9, 0.1e9, "public checkpoints: 203 GB"),
    ("engram_scale_bytes", V41, 6.14e9, 0.01e9, "released engine: 8 bytes per row on every GPU"),
    ("kv_bytes_per_token", V41, 890, 0, "technical report"),
    ("stored_state_bytes", V41, 1_415_040, 0, "article 001: 20 x 134 x 528"),
    ("full_state_bytes", V41, 3_128_928, 0, "released engine, cache layout"),
    ("backbone_parameters", V4, 284e9, 1e9, "model card of V4-Flash: 284B"),
    ("active_parameters_decode", V4, 13e9, 1e9, "model card of V4-Flash: 13B"),
    ("backbone_parameters", V3, 671e9, 1e9, "V3 technical report: 671B"),
    ("active_parameters_decode", V3, 37e9, 1e9, "V3 technical report: 37B"),
    ("kv_bytes_per_token", V3, 70_272, 0, "576 values in BF16 in each of 61 layers"),
])
def test_a_count_rounds_to_its_published_value(name, model, published, step, source):
    assert rounds_to(catalogue.value(name, model=model), published, step), source


@pytest.mark.parametrize(("ep", "redundant", "published"), [
    (2, 0, 158.6), (4, 4, 87.8), (8, 4, 50.8), (64, 0, 15.2), (64, 1, 16.0), (128, 1, 13.7)])
def test_weights_per_gpu_round_to_the_published_table(ep, redundant, published):
    """Source: deepinfer 0.1.0 formats and the public configuration."""
    assert rounds_to(catalogue.value("weight_bytes_per_gpu", ep=ep, redundant_experts=redundant) / 1e9, published, 0.1)


@pytest.mark.parametrize(("context", "published", "step"), [
    (1, 34.1, 0.1), (16_384, 41.0, 0.1), (77_000, 41.6, 0.1), (131_072, 42.1, 0.1), (1_000_000, 51.1, 0.12),
    (4_096, 40.65, 0.01), (8_192, 40.76, 0.01), (65_536, 41.48, 0.01), (262_144, 43.49, 0.01), (1_048_576, 51.54, 0.01)])
def test_decode_flops_against_context(context, published, step):
    """Source: the estimator of deepinfer 0.1.0 with the public configuration, worked out twice.

    The first list gives 51.1 at "1M", which is 10**6 tokens (51.05 here); the second gives 51.54 at 2**20.
    """
    assert rounds_to(catalogue.value("decode_flops_per_token", context=context) / 1e9, published, step)


@pytest.mark.parametrize(("context", "published"), [(1, 32.3), (8_192, 35.94), (77_000, 37.61), (1_048_576, 57.51)])
def test_plain_decode_flops(context, published):
    step = 0.1 if context == 1 else 0.01
    assert rounds_to(catalogue.value("decode_flops_plain", context=context) / 1e9, published, step)


@pytest.mark.parametrize(("tokens", "hit_rate", "without", "with_replay", "ratio"), [
    (16_384, 0.0, 37.99, 19.29, 0.508), (77_000, 0.96, 38.93, 20.48, 0.526)])
def test_bounded_replay_halves_prefill(tokens, hit_rate, without, with_replay, ratio):
    """Source: deepinfer 0.1.0; the kept rows' sliding window starts at the first kept row."""
    at = {"input_tokens": tokens, "hit_rate": hit_rate}
    assert rounds_to(catalogue.value("prefill_flops_per_token_full", **at) / 1e9, without, 0.01)
    assert rounds_to(catalogue.value("prefill_flops_per_token", **at) / 1e9, with_replay, 0.01)
    assert rounds_to(catalogue.value("prefill_flops_ratio_replay", **at), ratio, 0.001)


def test_plain_prefill_flops():
    """Source: deepinfer 0.1.0, 77,000 tokens from nothing with bounded replay: 17.84 GFLOP per token without weighting."""
    assert rounds_to(catalogue.value("prefill_flops_plain", input_tokens=77_000, hit_rate=0.0) / 1e9, 17.84, 0.01)
    assert catalogue.value("prefill_flops_plain") < catalogue.value("prefill_flops_per_token")


def test_the_older_table_differs_by_the_windows_of_the_kept_rows():
    """data/measured/deepinfer_flop_per_token.csv lets kept rows see a full window in the decoder layers.

    The engine cuts it at the first kept row: 8,128 keys fewer per layer, 14 MFLOP per token at 3,080 new tokens.
    """
    table = load_facts().points("deepinfer-flop-per-token")
    decode = table[table["phase"] == "decode"]
    for context, total in zip(decode["context"], decode["total_fp8eq"], strict=True):
        assert rounds_to(catalogue.value("decode_flops_per_token", context=context) / 1e9, total / 1e9, 0.01)
    keep, window = 140, 128
    unseen = window * (window - 1) / 2  # sum over kept rows of the keys before the first kept row
    assert keep > window
    for phase, context, new in (("prefill, cold, compact replay", 8192, 8192), ("prefill, cold, compact replay", 77_000, 77_000),
                                ("prefill, 3080 new, compact replay", 77_000, 3080)):
        row = table[(table["phase"] == phase) & (table["context"] == context)].iloc[0]
        ours = catalogue.value("prefill_flops_per_token", input_tokens=context, hit_rate=1 - new / context)
        older = ours + 20 * unseen * 64 * 2 * 512 * flop_per_mac("bf16") / new
        assert rounds_to(older / 1e9, row["total_fp8eq"] / 1e9, 0.01)
        assert ours <= older


def test_the_closed_form_over_a_prompt_is_the_sum_over_its_tokens():
    """Without replay, prefill of n tokens is n decode rows less all heads but one."""
    for model in (V41, V4):
        shape, tokens = load_shape(model), 1500
        every = decode_flops_by_class(shape, np.arange(1, tokens + 1))
        one_by_one = sum(float(np.sum(np.broadcast_to(part, tokens))) for part in every.values())
        heads = (tokens - 1) * decode_flops_by_class(shape, 1)["head"]
        assert float(prefill_flops(shape, 0, tokens)) == pytest.approx(one_by_one - heads, rel=1e-12)


@pytest.mark.parametrize("model", model_ids())
def test_classes_sum_to_the_totals(model):
    shape = load_shape(model)
    classes = parameters_by_class(shape)
    names = ["backbone_parameters", "engram_parameters", "draft_parameters"]
    assert sum(classes.values()) == sum(catalogue.value(name, model=model) for name in names)
    for ep in (1, 8, 64):
        for redundant in (0, 2):
            parts = bytes_by_class(shape, ep, redundant)
            whole = catalogue.value("weight_bytes_per_gpu", model=model, ep=ep, redundant_experts=redundant)
            assert sum(parts.values()) == pytest.approx(float(whole), rel=1e-12)
    assert all(size > 0 for size in classes.values())


def test_only_384_experts_of_width_2304_give_552b():
    """Article 000's 256 experts belong to V4-Flash: with them the same shape has 371B parameters."""
    shape = load_shape(V41)
    with_256 = shape.model_copy(update={"experts": shape.experts.model_copy(update={"routed": 256})})
    apart = ("draft", "Engram tables")
    backbone = {count: sum(size for name, size in parameters_by_class(one).items() if not name.startswith(apart))
                for count, one in ((384, shape), (256, with_256))}
    assert rounds_to(backbone[384] / 1e9, 552, 1)
    assert backbone[256] < 0.7 * backbone[384]


def test_experts_per_gpu_of_configuration_and_article():
    assert catalogue.value("experts_per_gpu", ep=64, redundant_experts=0) == 6
    assert catalogue.value("experts_per_gpu", ep=64, redundant_experts=1) == 7
    assert catalogue.value("experts_per_gpu", model=V4, ep=64, redundant_experts=0) == 4  # what the article prints


@pytest.mark.parametrize("ep", [5, 7, 100, 768, 0, -2, 1.5, float("nan"), "many", None, np.array([2, 5])])
def test_ep_that_does_not_divide_the_experts_is_refused(ep):
    with pytest.raises(InputError, match="divisor of the 384 routed experts"):
        catalogue.value("experts_per_gpu", ep=ep)


@pytest.mark.parametrize("redundant", [-1, 0.5, float("nan"), float("inf"), "one"])
def test_copies_are_whole_numbers(redundant):
    with pytest.raises(InputError, match="redundant_experts"):
        catalogue.value("experts_per_gpu", redundant_experts=redundant)


def test_a_total_of_copies_must_divide_by_the_group():
    assert redundant_per_gpu(64, 64) == 1
    assert redundant_per_gpu(16, 4) == 4
    with pytest.raises(InputError, match="multiple of ep = 64"):
        redundant_per_gpu(65, 64)


@pytest.mark.parametrize("context", [0, -1, 1_048_577, float("nan"), float("inf"), "long"])
def test_context_beyond_the_model_is_refused(context):
    with pytest.raises(InputError, match="context"):
        catalogue.value("decode_flops_per_token", context=context)


def test_context_limit_is_the_models_own():
    with pytest.raises(InputError, match="163840|163,840"):
        catalogue.value("decode_flops_per_token", model=V3, context=200_000)


def test_formats():
    assert bytes_per_value("mxfp4") == 0.53125
    assert 512 * bytes_per_value("kvfp4") == 288
    assert 512 * bytes_per_value("mxfp8") == 528
    assert 128 * bytes_per_value("mxfp4") == 68
    assert [flop_per_mac(name) for name in ("fp4", "fp8", "bf16", "fp32")] == [1, 2, 4, 8]
    for call in (bytes_per_value, flop_per_mac):
        with pytest.raises(InputError, match="format"):
            call("fp3")


def test_arrays_give_what_scalars_give():
    contexts = np.array([1, 1000, 77_000, 1_048_576])
    together = catalogue.value("decode_flops_per_token", context=contexts)
    assert together.shape == (4,)
    one_by_one = [catalogue.value("decode_flops_per_token", context=context) for context in contexts.tolist()]
    assert one_by_one == pytest.approx(together.tolist(), rel=1e-15)
    assert np.all(np.diff(together) > 0)
