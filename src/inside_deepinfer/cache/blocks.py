"""The block rule of the prefix cache: which part of a stored prefix a request may really use.

DeepInfer stores state at multiples of 128 tokens and must compute the last tokens of every prompt again, because the
sliding-window state of the decoder layers is rebuilt by prefill and not stored. So a hit is the largest multiple of the
block that is at most L - 134 (article 001; the grain and the 134 tokens are also in the released source, the look-up is not).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, load_facts, require, require_between, require_not_negative, require_positive
from inside_deepinfer.model.shape import load_shape

# plain: all that is stored; v4.1: the rule above; v4.1-state-missing: one block less, because the window state at the hit is gone
RULES: tuple[str, ...] = ("plain", "v4.1", "v4.1-state-missing")


def grain() -> int:
    """Tokens per block of the store (fact ``engine.block_tokens``)."""
    return int(load_facts().number("engine.block_tokens"))


def suffix() -> int:
    """Tokens at the end of every prompt that are always computed (fact ``engine.usable_suffix``)."""
    return int(load_facts().number("engine.usable_suffix"))


@lru_cache(maxsize=1)
def longest_input() -> int:
    """The longest prompt of the model that the articles describe."""
    return int(load_shape(str(load_facts().quantity("scenario.model").value)).body.max_context)


def usable_hit(stored: Any, input_tokens: Any, state_present: Any = True) -> Any:
    """Tokens of a prompt that need no prefill.

    Args:
        stored: tokens of the prompt's beginning that the store holds.
        input_tokens: length L of the prompt, at least 1 and at most the model's longest.
        state_present: whether the sliding-window state at the hit is stored as well; without it prefill starts
            one block earlier and computes that block again.

    Returns:
        The largest multiple of 128 that is at most ``stored`` and at most L - 134, less 128 where the state is missing;
        0 for prompts below 134 + 128 tokens. Arrays broadcast.
    """
    require_not_negative("stored", stored)
    require_between("input_tokens", input_tokens, 1, longest_input())
    return apply_rule(stored, input_tokens, grain(), suffix(), np.where(np.asarray(state_present), 0, grain()))


def apply_rule(stored: Any, input_tokens: Any, block: int, kept_out: int, back: Any = 0) -> Any:
    """:func:`usable_hit` without its checks, for arrays that were checked before."""
    reach = np.minimum(stored, np.maximum(np.asarray(input_tokens) - kept_out, 0))
    return np.maximum(reach // block * block - back, 0)


def rule_function(rule: str) -> Callable[[Any, Any], Any]:
    """``(stored, input_tokens) -> usable tokens`` for the name of a rule (:data:`RULES`)."""
    require(rule in RULES, "rule", rule, " or ".join(RULES))
    if rule == "plain":
        return np.minimum
    block, kept_out = grain(), suffix()
    back = block if rule == "v4.1-state-missing" else 0
    return lambda stored, input_tokens: apply_rule(stored, input_tokens, block, kept_out, back)


@derived(label="highest hit rate the block rule allows", unit="ratio", formula="longest_hit / input_tokens")
def longest_hit_rate(longest_hit: Any, input_tokens: Any) -> Any:
    """Ceiling for a prompt of this length, even with an infinite store: 99.74 % at 77,000 tokens."""
    return longest_hit / require_positive("input_tokens", input_tokens)


@derived(label="share of the prompt lost where the window state is missing", unit="ratio", formula="block / input_tokens",
         uses={"block": "block_tokens"})
def state_missing_loss(block: Any, input_tokens: Any) -> Any:
    """Prefill starts one block earlier when the sliding-window state of the hit is gone."""
    return block / require_positive("input_tokens", input_tokens)
