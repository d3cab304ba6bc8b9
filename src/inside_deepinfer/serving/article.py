"""The article authors' own chains, step by step as they wrote them, so that the audit can recompute each one.

These are the authors' formulas, not ours: what they leave out is counted in ``serving.hbm`` and ``model``.
A claim id among the inputs (``decode.benchmark``) stands for the value that the article prints.
"""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import derived, require, require_between, require_positive
from inside_deepinfer.facts.units import BITS_PER_BYTE


@derived(label="prefill speed-up from cache hits", unit="ratio", formula="1 / (1 - hit_rate)")
def cache_speedup(hit_rate: Any) -> Any:
    """Tokens served per token computed: another way to write the hit rate."""
    hit_rate = require_between("hit_rate", hit_rate, 0.0, 1.0)
    require(hit_rate < 1, "hit_rate", hit_rate, "below 1, since some tokens of every prompt are computed again")
    return 1 / (1 - hit_rate)


@derived(label="effective input price at the lower hit rate", unit="price/Mtoken",
         formula="low * price_hit + (1 - low) * price_miss", uses={"low": "article.hit_rate_low"})
def effective_input_price_low(low: Any, price_hit: Any, price_miss: Any) -> Any:
    """Article 004 compares 96 % with 80 %."""
    return require_between("hit rate", low, 0.0, 1.0) * price_hit + (1 - low) * price_miss


@derived(label="effective input price at the lower hit rate over the one at hand", unit="ratio",
         formula="effective_input_price_low / effective_input_price")
def input_price_jump(effective_input_price_low: Any, effective_input_price: Any) -> Any:
    """What losing the hits costs the customer."""
    return effective_input_price_low / require_positive("effective_input_price", effective_input_price)


@derived(label="sequences per GPU from the benchmark", unit="sequence/GPU", formula="benchmark / user_speed",
         uses={"benchmark": "decode.benchmark", "user_speed": "decode.user_speed"})
def sequences_from_benchmark(benchmark: Any, user_speed: Any) -> Any:
    """Throughput over speed per user is the number of users served at once."""
    return benchmark / require_positive("user_speed", user_speed)


@derived(label="sequences per GPU from the throughput given with the speed", unit="sequence/GPU", formula="decode_throughput / user_speed",
         uses={"user_speed": "decode.user_speed"})
def sequences_from_throughput(decode_throughput: Any, user_speed: Any) -> Any:
    """The same from the throughput that article 000 gives beside the speed per user."""
    return require_positive("decode_throughput", decode_throughput) / require_positive("user_speed", user_speed)


@derived(label="speed per user from the benchmark", unit="token/(s*user)", formula="benchmark / batch",
         uses={"benchmark": "decode.benchmark"})
def user_speed_from_benchmark(benchmark: Any, batch: Any) -> Any:
    """Throughput over sequences."""
    return benchmark / require_positive("batch", batch)


@derived(label="speed per user from the throughput given with the sequences", unit="token/(s*user)", formula="decode_throughput / batch")
def user_speed_from_throughput(decode_throughput: Any, batch: Any) -> Any:
    """The same from the throughput that is given beside the sequences."""
    return require_positive("decode_throughput", decode_throughput) / require_positive("batch", batch)


@derived(label="decode step time of article 000", unit="s", formula="batch * tokens_per_step / benchmark",
         uses={"benchmark": "decode.benchmark", "tokens_per_step": "article.tokens_per_step"})
def article_step_time(batch: Any, tokens_per_step: Any, benchmark: Any) -> Any:
    """A step gives every sequence that many tokens; the benchmark says how many tokens leave in a second."""
    return require_positive("batch", batch) * tokens_per_step / require_positive("benchmark", benchmark)


@derived(label="FLOP per token of article 000", unit="FLOP/token", formula="2 * active", uses={"active": "decode.active_params"})
def article_flops_per_token(active: Any) -> Any:
    """A multiply and an add per active parameter; attention over the context is left out."""
    return 2 * require_positive("active parameters", active)


@derived(label="useful compute of article 000", unit="FLOP/s", formula="benchmark * article_flops_per_token",
         uses={"benchmark": "decode.benchmark"})
def article_compute(benchmark: Any, article_flops_per_token: Any) -> Any:
    """Per decode GPU, output tokens only."""
    return require_positive("benchmark", benchmark) * article_flops_per_token


@derived(label="rows per step that the article's verified compute implies", unit="token",
         formula="verified_compute / compute * tokens_per_step",
         uses={"verified_compute": "decode.compute_verified", "compute": "decode.compute",
               "tokens_per_step": "article.tokens_per_step"})
def rows_per_step_implied(verified_compute: Any, compute: Any, tokens_per_step: Any) -> Any:
    """Rows computed per sequence and step, read back from the article's two compute figures."""
    return verified_compute / require_positive("compute", compute) * tokens_per_step


@derived(label="fewest rows per step that the reported drafts mean", unit="token", formula="1 + verified[1]",
         uses={"verified": "spec.verified"})
def verified_rows_low(verified: Any) -> Any:
    """Verified drafts (claim spec.verified: all, low, high) and the row of the last sampled token, which they leave out."""
    return 1 + verified[1]


@derived(label="most rows per step that the reported drafts mean", unit="token", formula="1 + verified[2]",
         uses={"verified": "spec.verified"})
def verified_rows_high(verified: Any) -> Any:
    """As above, with the upper reported figure."""
    return 1 + verified[2]


@derived(label="compute with the fewest verified rows", unit="FLOP/s",
         formula="article_compute * verified_rows_low / tokens_per_step", uses={"tokens_per_step": "article.tokens_per_step"})
def verified_compute_low(article_compute: Any, verified_rows_low: Any, tokens_per_step: Any) -> Any:
    """What the article's own figure becomes with the rows that the reported drafts mean."""
    return article_compute * verified_rows_low / require_positive("tokens_per_step", tokens_per_step)


@derived(label="compute with the most verified rows", unit="FLOP/s",
         formula="article_compute * verified_rows_high / tokens_per_step", uses={"tokens_per_step": "article.tokens_per_step"})
def verified_compute_high(article_compute: Any, verified_rows_high: Any, tokens_per_step: Any) -> Any:
    """As above, with the upper reported figure."""
    return article_compute * verified_rows_high / require_positive("tokens_per_step", tokens_per_step)


@derived(label="useful compute over the card's FP4 peak", unit="ratio", formula="compute / card_fp4_peak",
         uses={"compute": "decode.compute"})
def article_utilisation_fp4(compute: Any, card_fp4_peak: Any) -> Any:
    """The lower end of the article's range: output tokens only, against the higher peak."""
    return compute / require_positive("card_fp4_peak", card_fp4_peak)


@derived(label="compute with verified rows over the card's FP8 peak", unit="ratio", formula="verified_compute / card_fp8_peak",
         uses={"verified_compute": "decode.compute_verified"})
def article_utilisation_fp8(verified_compute: Any, card_fp8_peak: Any) -> Any:
    """The upper end of the article's range."""
    return verified_compute / require_positive("card_fp8_peak", card_fp8_peak)


@derived(label="weights per GPU of article 000", unit="B/GPU", formula="parameters * bits / 8 / ep",
         uses={"parameters": "article.parameters", "bits": "format.mxfp4.bits"})
def article_weight_bytes(parameters: Any, bits: Any, ep: Any) -> Any:
    """Every parameter in four bits and spread evenly: no scales, nothing replicated."""
    return parameters * bits / BITS_PER_BYTE / require_positive("ep", ep)


@derived(label="mean read bandwidth of article 000", unit="B/s", formula="article_weight_bytes / article_step_time")
def article_bandwidth(article_weight_bytes: Any, article_step_time: Any) -> Any:
    """All weights of the GPU once per step."""
    return article_weight_bytes / require_positive("article_step_time", article_step_time)


@derived(label="mean read bandwidth over peak, article 000", unit="ratio", formula="article_bandwidth / peak",
         uses={"peak": "hbm.peak"})
def article_bandwidth_share(article_bandwidth: Any, peak: Any) -> Any:
    """Against the peak that the article states."""
    return article_bandwidth / require_positive("peak", peak)


@derived(label="read bandwidth in the time left for weights, article 000", unit="B/s", formula="article_weight_bytes / window",
         uses={"window": "article.weights_window"})
def article_burst_bandwidth(article_weight_bytes: Any, window: Any) -> Any:
    """The same bytes in one millisecond."""
    return article_weight_bytes / require_positive("window", window)


@derived(label="that bandwidth over peak, article 000", unit="ratio", formula="article_burst_bandwidth / peak",
         uses={"peak": "hbm.peak"})
def article_burst_share(article_burst_bandwidth: Any, peak: Any) -> Any:
    """Against the peak that the article states."""
    return article_burst_bandwidth / require_positive("peak", peak)


@derived(label="window state per sequence of article 001", unit="B/sequence", formula="layers * tokens * size",
         uses={"layers": "article.state_layers", "tokens": "article.state_tokens", "size": "article.state_bytes"})
def article_state_bytes(layers: Any, tokens: Any, size: Any) -> Any:
    """The product that the article checks itself."""
    return layers * tokens * size


@derived(label="tokens that an exact rebuild would replay", unit="token", formula="layers * (window - 1)",
         uses={"layers": "article.state_layers", "window": "replay.window"})
def exact_replay_tokens(layers: Any, window: Any) -> Any:
    """Each stacked window layer looks ``window - 1`` tokens further back."""
    return layers * (window - 1)


@derived(label="prefill compute per GPU", unit="FLOP/s", formula="prefill_throughput_new * prefill_flops_per_token")
def prefill_compute(prefill_throughput_new: Any, prefill_flops_per_token: Any) -> Any:
    """FP8-equivalent, by the released engine's own weighting."""
    return require_positive("prefill_throughput_new", prefill_throughput_new) * prefill_flops_per_token


@derived(label="prefill compute over the card's FP8 peak", unit="ratio", formula="prefill_compute / card_fp8_peak")
def prefill_compute_share(prefill_compute: Any, card_fp8_peak: Any) -> Any:
    """Above 1 the reported throughput would be impossible on this card."""
    return prefill_compute / require_positive("card_fp8_peak", card_fp8_peak)


@derived(label="DSpark speed per user over MTP-1, minus 1, first point", unit="ratio", formula="dspark / mtp - 1",
         uses={"dspark": "dspark.fig7.user_speed_dspark_low", "mtp": "dspark.fig7.user_speed_mtp1_low"})
def dspark_speedup_low(dspark: Any, mtp: Any) -> Any:
    """At equal throughput per GPU. V4-Flash (preview), not V4.1."""
    return dspark / require_positive("mtp", mtp) - 1


@derived(label="DSpark speed per user over MTP-1, minus 1, second point", unit="ratio", formula="dspark / mtp - 1",
         uses={"dspark": "dspark.fig7.user_speed_dspark_high", "mtp": "dspark.fig7.user_speed_mtp1_high"})
def dspark_speedup_high(dspark: Any, mtp: Any) -> Any:
    """At equal throughput per GPU. V4-Flash (preview), not V4.1."""
    return dspark / require_positive("mtp", mtp) - 1


@derived(label="HBM that the engine may fill", unit="B/GPU", formula="card_memory * share",
         uses={"share": "engine.hbm_utilisation"})
def fillable_memory(card_memory: Any, share: Any) -> Any:
    """Weights, KV and state must fit in it; the rest is the runtime's."""
    return card_memory * require_between("share", share, 0.0, 1.0)


@derived(label="encoding speed-up of article 001, 20 turns", unit="ratio", formula="times[1] / times[0]",
         uses={"times": "api.encode_speed_20"})
def encode_speedup_20(times: Any) -> Any:
    """Whole prompt over segment-wise; the claim lists segment-wise time, whole-prompt time and their ratio."""
    return times[1] / times[0]


@derived(label="encoding speed-up of article 001, 200 turns", unit="ratio", formula="times[1] / times[0]",
         uses={"times": "api.encode_speed_200"})
def encode_speedup_200(times: Any) -> Any:
    """As above."""
    return times[1] / times[0]


@derived(label="encoding speed-up of article 001, 400 turns", unit="ratio", formula="times[1] / times[0]",
         uses={"times": "api.encode_speed_400"})
def encode_speedup_400(times: Any) -> Any:
    """As above."""
    return times[1] / times[0]


@derived(label="largest encoding speed-up that the threads allow", unit="ratio", formula="one_thread[1] * threads",
         uses={"one_thread": "api.encode_single_thread", "threads": "article.encode_threads"})
def encode_speedup_limit(one_thread: Any, threads: Any) -> Any:
    """The whole-prompt way uses one thread, so the segment-wise way gains at most its one-thread gain times the threads."""
    return one_thread[1] * require_positive("threads", threads)
