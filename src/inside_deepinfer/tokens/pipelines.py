"""Seven ways from a request to token ids, as people build them; each is a few lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from inside_deepinfer.facts import InputError
from inside_deepinfer.tokens import rendering
from inside_deepinfer.tokens.carriers import Body
from inside_deepinfer.tokens.rendering import Rendered
from inside_deepinfer.tokens.texts import require_growth
from inside_deepinfer.tokens.vocabulary import added_tokens, encode_whole, full_tokenizer, recipe_encoding, splitting_tokenizer


@dataclass(frozen=True)
class Pipeline:
    """A filter on the text, a renderer, and a tokenizer.

    Attributes:
        clean: what happens to the text before it is put into the request.
        cost: what the defence costs, for the table of the chapter.
    """

    name: str
    label: str
    doc: str
    cost: str
    render: Callable[[Body], Rendered]
    tokenise: Callable[[Rendered], list[int]]
    clean: Callable[[str], str] = str


def segments(rendered: Rendered) -> list[int]:
    """deepseek-recipe: markers get their ids by position, the text between them is encoded without added vocabulary."""
    if rendered.conversation is None:
        raise ValueError("a prompt made by hand has no conversation")
    return recipe_encoding().encode(rendered.conversation)


def whole(rendered: Rendered) -> list[int]:
    """The prompt string through a full-vocabulary tokenizer."""
    return encode_whole(full_tokenizer(), rendered.prompt)


def split_special(rendered: Rendered) -> list[int]:
    """The same with "split special tokens" switched on."""
    return encode_whole(splitting_tokenizer(), rendered.prompt)


def delete(text: str) -> str:
    """Delete every exact spelling of an added token, one pass per token."""
    for spelling in _spellings():
        text = text.replace(spelling, "")
    return text


@lru_cache(maxsize=1)
def _spellings() -> tuple[str, ...]:
    return tuple(token.spelling for token in added_tokens().values())


def nfkc_delete(text: str) -> str:
    """Unicode NFKC, then delete exact spellings."""
    return delete(require_growth(unicodedata.normalize("NFKC", text)))


def escape_bar(text: str) -> str:
    """A backslash in front of each full-width bar."""
    return text.replace("｜", "\\｜")


_ALL = (
    Pipeline("recipe", "deepseek-recipe", "Conversation to ids; only the renderer can place a control token.",
             "a renderer that knows where its markers are", rendering.recipe, segments),
    Pipeline("whole-prompt", "whole prompt", "deepseek-recipe's prompt string through a full-vocabulary tokenizer.",
             "none, and no defence", rendering.recipe, whole),
    Pipeline("split-special", "split special tokens", "The same with the tokenizer's option that splits special tokens.",
             "markers of the template are split as well", rendering.recipe, split_special),
    Pipeline("template", "template by hand", "An f-string with the markers typed in, through a full-vocabulary tokenizer.",
             "none, and no defence", rendering.by_hand, whole),
    Pipeline("delete", "delete spellings", "Every exact spelling is deleted from the text once; then the whole prompt.",
             "texts about control tokens are damaged", rendering.recipe, whole, delete),
    Pipeline("nfkc-delete", "NFKC, then delete", "Unicode normal form NFKC, then deletion; then the whole prompt.",
             "every text with full-width or compatibility characters changes", rendering.recipe, whole, nfkc_delete),
    Pipeline("escape", "escape the bar", "A backslash before each full-width bar; then the whole prompt.",
             "the model reads backslashes that nobody wrote", rendering.recipe, whole, escape_bar),
)
PIPELINES: dict[str, Pipeline] = {pipeline.name: pipeline for pipeline in _ALL}


def pipeline_of(name: str) -> Pipeline:
    """The pipeline called ``name``."""
    if name not in PIPELINES:
        raise InputError("pipeline", name, ", ".join(PIPELINES))
    return PIPELINES[name]
