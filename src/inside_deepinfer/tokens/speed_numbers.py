"""What follows from the encoding times that article 001 prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inside_deepinfer.facts import NotPossible, derived, require_positive
from inside_deepinfer.facts.arrays import scalar

_LIMIT = {"limit": "encode_speedup_limit"}


@derived(label="parallel efficiency, 20 turns", unit="ratio", formula="speedup / limit", uses=_LIMIT | {"speedup": "encode_speedup_20"})
def encode_efficiency_20(speedup: Any, limit: Any) -> Any:
    """Share of the largest possible speed-up that article 001 reached."""
    return speedup / require_positive("limit", limit)


@derived(label="parallel efficiency, 200 turns", unit="ratio", formula="speedup / limit",
         uses=_LIMIT | {"speedup": "encode_speedup_200"})
def encode_efficiency_200(speedup: Any, limit: Any) -> Any:
    """As above."""
    return speedup / require_positive("limit", limit)


@derived(label="parallel efficiency, 400 turns", unit="ratio", formula="speedup / limit",
         uses=_LIMIT | {"speedup": "encode_speedup_400"})
def encode_efficiency_400(speedup: Any, limit: Any) -> Any:
    """As above."""
    return speedup / require_positive("limit", limit)


@derived(label="whole prompt: time per character, longest over shortest conversation", unit="ratio",
         formula="(long[1] / characters[2]) / (short[1] / characters[0])",
         uses={"long": "api.encode_speed_400", "short": "api.encode_speed_20", "characters": "tokens.speed_characters"})
def encode_whole_growth(long: Any, short: Any, characters: Any) -> Any:
    """Above 1: a long prompt costs more per character than a short one."""
    return (long[1] / characters[2]) / (short[1] / characters[0])


@derived(label="segments: time per character, longest over shortest conversation", unit="ratio",
         formula="(long[0] / characters[2]) / (short[0] / characters[0])",
         uses={"long": "api.encode_speed_400", "short": "api.encode_speed_20", "characters": "tokens.speed_characters"})
def encode_segments_growth(long: Any, short: Any, characters: Any) -> Any:
    """Below 1: the fixed cost of a call is spread over more text."""
    return (long[0] / characters[2]) / (short[0] / characters[0])


@derived(label="longest conversation of article 001, segment by segment", unit="s", formula="times[0]",
         uses={"times": "api.encode_speed_400"})
def encode_segments_400(times: Any) -> Any:
    """On the author's machine."""
    return times[0]


@derived(label="longest conversation of article 001, whole prompt", unit="s", formula="times[1]", uses={"times": "api.encode_speed_400"})
def encode_whole_400(times: Any) -> Any:
    """On the author's machine."""
    return times[1]


@derived(label="one-thread gain of article 001, lower end", unit="ratio", formula="gain[0]", uses={"gain": "api.encode_single_thread"})
def encode_one_thread_low(gain: Any) -> Any:
    """Segments over the whole prompt, both with one thread."""
    return gain[0]


@derived(label="one-thread gain of article 001, upper end", unit="ratio", formula="gain[1]", uses={"gain": "api.encode_single_thread"})
def encode_one_thread_high(gain: Any) -> Any:
    """As above."""
    return gain[1]


_CASES = {"short": "api.encode_speed_20", "middle": "api.encode_speed_200", "long": "api.encode_speed_400",
          "characters": "tokens.speed_characters", "tokens": "tokens.speed_tokens_200"}
_BETWEEN = "{} time between article 001's three conversations, in logarithms, at input_tokens * characters[1] / tokens characters"


def _between(input_tokens: Any, times: Sequence[float], characters: Any, tokens: Any) -> Any:
    """Time at a prompt's length; nothing is said about lengths that the article did not try."""
    length = require_positive("input_tokens", input_tokens) * characters[1] / tokens
    if np.any((length < characters[0]) | (length > characters[2])):
        shortest, longest = (round(end * tokens / characters[1]) for end in (characters[0], characters[2]))
        raise NotPossible(f"article 001 timed conversations of {shortest:,} to {longest:,} tokens; others would be guessed")
    found = np.exp(np.interp(np.log(length), np.log(characters), np.log(times)))
    return scalar(found)


@derived(label="time to encode a prompt of mean length whole", unit="s", words=True, uses=_CASES, formula=_BETWEEN.format("whole-prompt"))
def encode_whole_mean(input_tokens: Any, short: Any, middle: Any, long: Any, characters: Any, tokens: Any) -> Any:
    """On the author's machine and with the characters per token of his conversation of 200 round trips."""
    return _between(input_tokens, [short[1], middle[1], long[1]], characters, tokens)


@derived(label="time to encode a prompt of mean length in segments", unit="s", words=True, uses=_CASES,
         formula=_BETWEEN.format("segment-wise"))
def encode_segments_mean(input_tokens: Any, short: Any, middle: Any, long: Any, characters: Any, tokens: Any) -> Any:
    """As above."""
    return _between(input_tokens, [short[0], middle[0], long[0]], characters, tokens)


@derived(label="time that segments save, over the mean time to the first token", unit="ratio", formula="(whole - segments) / first_token",
         uses={"whole": "encode_whole_mean", "segments": "encode_segments_mean", "first_token": "prefill.ttft_mean"})
def encode_saved_share(whole: Any, segments: Any, first_token: Any) -> Any:
    """For a prompt of mean length on the author's machine."""
    return (whole - segments) / require_positive("first_token", first_token)


@derived(label="longest conversation of article 001", unit="character", formula="characters[2]",
         uses={"characters": "tokens.speed_characters"})
def encode_longest_characters(characters: Any) -> Any:
    """About 1.68 million tokens, as the article states."""
    return characters[2]
