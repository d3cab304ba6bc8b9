"""What follows from the encoding times that article 001 prints."""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import derived, require_positive

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


@derived(label="time that segment-wise encoding takes off the longest conversation", unit="s", formula="times[1] - times[0]",
         uses={"times": "api.encode_speed_400"})
def encode_time_saved_400(times: Any) -> Any:
    """Before the first token, on the author's machine."""
    return times[1] - times[0]


@derived(label="longest conversation of article 001", unit="character", formula="characters[2]",
         uses={"characters": "tokens.speed_characters"})
def encode_longest_characters(characters: Any) -> Any:
    """About 1.68 million tokens, as the article states."""
    return characters[2]
