"""Who put a control token into a prompt: the template or the text.

The rule. We render the same request twice, once with the text and once with a neutral word in its place. What stays the same is
the template; what stands where the neutral word stood is the text. The tokenizer has no normaliser, so each token covers a
definite range of the prompt's bytes, and a control token belongs to the text as soon as one of its bytes does. The rule uses no
knowledge of the pipeline, and for deepseek-recipe it can be checked against the ranges that its renderer reports (tests do).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from inside_deepinfer.tokens.alphabet import token_ends
from inside_deepinfer.tokens.encoded import Control, Turn
from inside_deepinfer.tokens.vocabulary import added_tokens, control_ids

Ranges = tuple[tuple[int, int], ...]

# the neutral words: letters only, so that every carrier takes them, and unlike anything in a template
NEUTRAL = tuple(f"qzjx{letter}wvqk" for letter in "abcdefghijklmnopqrstuvwxyz")

ROLES = {"<｜System｜>": "system", "<｜User｜>": "user", "<｜Assistant｜>": "assistant", "<｜latest_reminder｜>": "reminder"}
END = "<｜end▁of▁sentence｜>"
START = "start"  # what stands in front of the first role marker


def data_ranges(prompt: str, neutral: str, parts: Sequence[str]) -> Ranges:
    """Byte ranges of ``prompt`` that the text fills.

    Args:
        prompt: rendered with the text.
        neutral: rendered with one neutral word per part.
        parts: the parts of the text, used only to find where one ends and the next begins.
    """
    words = [word for word in NEUTRAL[:len(parts)] if word in neutral]
    if not words:
        return ()
    fixed = _around(neutral, words)
    ranges = _between_parts(prompt, fixed, parts) if len(words) > 1 else None
    if ranges is None:
        head, tail = _common(prompt, fixed[0]), _common_end(prompt, fixed[-1])
        ranges = [(head, max(head, len(prompt) - tail))]
    return tuple((_bytes(prompt[:start]), _bytes(prompt[:stop])) for start, stop in ranges)


def _around(neutral: str, words: Sequence[str]) -> list[str]:
    fixed, rest = [], neutral
    for word in words:
        before, _, rest = rest.partition(word)
        fixed.append(before)
    return [*fixed, rest]


def _between_parts(prompt: str, fixed: Sequence[str], parts: Sequence[str]) -> list[tuple[int, int]] | None:
    """Exact places of several parts; None where the renderer changed one of them (then the whole stretch counts as text)."""
    ranges, at = [], 0
    for before, part in zip(fixed, parts, strict=False):
        at += len(before)
        ranges.append((at, at + len(part)))
        at += len(part)
    whole = "".join(piece for pair in zip(fixed, (*parts, ""), strict=False) for piece in pair)
    return ranges if whole == prompt and len(fixed) == len(parts) + 1 else None


def _common(left: str, right: str) -> int:
    """Length of the longest common beginning."""
    most = min(len(left), len(right))
    if left[:most] == right[:most]:
        return most
    return next(n for n in range(most) if left[n] != right[n])


def _common_end(left: str, right: str) -> int:
    return _common(left[::-1], right[::-1])


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def control_tokens(ids: Sequence[int], data: Ranges) -> tuple[Control, ...]:
    """Every control token with its owner."""
    added, wanted = added_tokens(), control_ids()
    ends = token_ends(ids)
    starts = [start for start, _ in data]
    found = []
    for position, number in enumerate(ids):
        if number in wanted:
            stop = ends[position]
            start = ends[position - 1] if position else 0
            near = bisect_right(starts, stop - 1) - 1  # the last range that begins inside or before the token
            mine = near >= 0 and data[near][1] > start
            found.append(Control(position, number, added[number].spelling, "data" if mine else "template"))
    return tuple(found)


def turns_of(control: Sequence[Control], length: int) -> tuple[Turn, ...]:
    """The turns that a model reads from the control tokens, whoever put them there.

    A role marker opens a turn; the next role marker or the end-of-sentence marker closes it.
    """
    opened: list[tuple[str, int, Control | None]] = [(START, 0, None)]
    for token in control:
        if token.spelling in ROLES:
            opened.append((ROLES[token.spelling], token.position, token))
    stops = [start for _, start, _ in opened[1:]] + [length]
    ends = [token.position + 1 for token in control if token.spelling == END]
    turns = []
    for (role, start, token), stop in zip(opened, stops, strict=True):
        closed = next((end for end in ends if start < end <= stop), stop)
        if closed > start:
            turns.append(Turn(role, start, closed, token.owner if token else "template"))
        if closed < stop:
            turns.append(Turn("outside", closed, stop, "template"))
    return tuple(turns)
