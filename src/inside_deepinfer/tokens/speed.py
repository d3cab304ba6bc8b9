"""How long a conversation takes to encode: segment by segment (deepseek-recipe) against the whole prompt at once.

Threads are set by ``RAYON_NUM_THREADS`` before the process starts; ``benchmarks/encoding.py`` runs this once per thread count.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from deepseek_recipe import AssistantMessage, Conversation, UserMessage

from inside_deepinfer.facts import load_facts, require_positive
from inside_deepinfer.tokens.vocabulary import full_tokenizer, recipe_encoding, recipe_tokenizer

_WORDS = (
    "the cluster serves tokens from a prefix cache while each decode step reads expert weights from memory and requests wait "
    "in line for index in range return value error import result table column file path count response server latency "
    "throughput measured yesterday because between another simple question about the price of an answer"
)
_SENTENCES = (
    "この会話の続きを読み、前に決めたことを確認してください。", "キャッシュに残っている部分は計算し直しません。",
    "ログの三行目に出ている時刻を教えてください。",
    "変更した関数の名前と理由を短くまとめました。",
    "試験はすべて通りましたが、境界の値は見ていません。",
)


def sizes() -> list[tuple[int, int]]:
    """Round trips and characters of the source article's three conversations (claims api.encode_speed_*)."""
    facts = load_facts()
    turns, characters = (facts.quantity(f"tokens.speed_{name}").value for name in ("turns", "characters"))
    return [(int(turn), int(count)) for turn, count in zip(turns, characters, strict=True)]


@dataclass(frozen=True)
class Timing:
    """Fastest times in seconds for one conversation."""

    turns: int
    characters: int
    tokens: int
    segments: float
    whole: float
    whole_recipe: float

    @property
    def ratio(self) -> float:
        """How many times faster the segments are than the whole prompt in Hugging Face's tokenizer."""
        return self.whole / self.segments

    @property
    def ratio_recipe(self) -> float:
        """The same against the whole prompt in deepseek-recipe's own tokenizer (no offsets are kept)."""
        return self.whole_recipe / self.segments


def conversation(turns: int, characters: int, seed: int = 1) -> Conversation:
    """A made-up conversation: English, Japanese and numbers mixed to about the article's 3.5 characters per token."""
    require_positive("turns", turns)
    require_positive("characters", characters)
    chance, share = random.Random(seed), max(1, characters // (2 * turns))
    messages: list[Any] = []
    for _ in range(turns):
        messages += [UserMessage(_text(chance, share)), AssistantMessage(_text(chance, share))]
    return Conversation([*messages, UserMessage("Go on.")])


def _text(chance: random.Random, characters: int) -> str:
    common, words, length = _WORDS.split(), [], 0
    while length < characters:
        draw = chance.random()
        if draw < 0.06:
            word = chance.choice(_SENTENCES)
        elif draw < 0.14:
            word = str(chance.randrange(10**6))
        else:
            word = chance.choice(common) + (".\n" if draw > 0.94 else "")
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:characters]


def fastest(call: Callable[[], Any], repeat: int) -> float:
    """The shortest of ``repeat`` runs in seconds (the article takes the best of three)."""
    times = []
    for _ in range(repeat):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def measure(turns: int, characters: int, repeat: int = 3) -> Timing:
    """Encode one conversation both ways; the ids must agree, or the comparison would mean nothing."""
    made = conversation(turns, characters)
    encoding, full, own = recipe_encoding(), full_tokenizer(), recipe_tokenizer()
    prompt = encoding.render_conversation(made).prompt
    ids = encoding.encode(made)
    if own.encode(prompt) != ids:
        raise ValueError("the two ways gave different ids")
    return Timing(turns, len(prompt), len(ids), fastest(lambda: encoding.encode(made), repeat),
                  fastest(lambda: full.encode(prompt, add_special_tokens=False), repeat),
                  fastest(lambda: own.encode(prompt), repeat))
