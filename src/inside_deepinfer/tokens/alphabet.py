"""Token ids as bytes: the byte alphabet of the vocabulary, and where each token lies in the encoded text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from inside_deepinfer.tokens.vocabulary import added_tokens, full_tokenizer


def _alphabet() -> dict[int, str]:
    """Byte -> the printable character that stands for it in a byte-level vocabulary (GPT-2, encoder.py, 2019)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    shifted = (byte for byte in range(256) if byte not in plain)
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(shifted)}


BYTE_CHARACTERS = _alphabet()
_CHARACTER_BYTES = {character: byte for byte, character in BYTE_CHARACTERS.items()}


@lru_cache(maxsize=200_000)
def token_bytes(number: int) -> bytes:
    """The bytes of text that a token stands for."""
    added = added_tokens().get(number)
    if added:
        return added.spelling.encode("utf-8")
    spelled = full_tokenizer().id_to_token(number)
    if spelled is None:
        raise ValueError(f"no token has the id {number}")
    return bytes(_CHARACTER_BYTES[character] for character in spelled)


def token_ends(ids: Sequence[int]) -> list[int]:
    """Byte offset behind each token.

    The tokenizer has no normaliser, so the tokens' bytes in a row are the text: offsets follow from the ids alone,
    whichever library made them.
    """
    return list(accumulate(len(token_bytes(number)) for number in ids))


def text_of(ids: Sequence[int]) -> bytes:
    """The text that was encoded."""
    return b"".join(map(token_bytes, ids))
