"""The hole of each defence as a derived number, so that the chapters can name it: what still gets in, and what is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inside_deepinfer.facts import derived

_BOTH = {"tokenizer": "tokens.file_sha256", "library": "tokens.recipe_version"}
_ATTACK = _BOTH | {"text": "tokens.attack"}


def _number(label: str, formula: str, unit: str = "control token", uses: dict[str, str] = _ATTACK) -> Callable[..., Any]:
    return derived(label=label, unit=unit, formula=formula, uses=uses, words=True)


def _encoded(text: str, carrier: str, pipeline: str, spelling: str = "exact") -> Any:
    from inside_deepinfer.tokens.laboratory import encode

    return encode(text, carrier, pipeline, spelling)


@_number("control tokens that the article's text injects", "control ids whose bytes are the text's, whole prompt, user text")
def injected_whole_prompt(tokenizer: Any, library: Any, text: str) -> int:
    """Four markers stand in the text, and all of them become control tokens."""
    return int(_encoded(text, "user", "whole-prompt").injected)


@_number("injected with \"split special tokens\"", "control ids whose bytes are the text's, option switched on, user text")
def injected_split_special(tokenizer: Any, library: Any, text: str) -> int:
    """The file flags these markers as not special, and the option works on special ones only."""
    return int(_encoded(text, "user", "split-special").injected)


@_number("markers of the template lost with \"split special tokens\"", "template markers that became ordinary tokens, user text")
def lost_split_special(tokenizer: Any, library: Any, text: str) -> int:
    """The option cannot tell the template's own markers from the text's."""
    return int(_encoded(text, "user", "split-special").lost)


@_number("injected past an escaped bar", "control ids whose bytes are the text's, bar escaped, user text")
def injected_escape(tokenizer: Any, library: Any, text: str) -> int:
    """``</think>`` has no bar."""
    return int(_encoded(text, "user", "escape").injected)


@_number("injected past deletion, markers nested", "control ids whose bytes are the text's, one pass of deletion, user text")
def injected_delete_nested(tokenizer: Any, library: Any, text: str) -> int:
    """What deletion leaves is the marker."""
    return int(_encoded(text, "user", "delete", "nested").injected)


@_number("injected past NFKC and deletion, markers nested",
         "control ids whose bytes are the text's, NFKC and one pass of deletion, user text")
def injected_nfkc_nested(tokenizer: Any, library: Any, text: str) -> int:
    """NFKC rewrites the full-width bar, so only the marker without one survives."""
    return int(_encoded(text, "user", "nfkc-delete", "nested").injected)


@_number("injected past every filter by JSON escapes", "smallest count over the three filters, tool-call arguments")
def injected_json_escapes(tokenizer: Any, library: Any, text: str) -> int:
    """The filter runs before the renderer decodes the escapes."""
    return min(int(_encoded(text, "tool-arguments", name, "json-escape").injected) for name in ("delete", "nfkc-delete", "escape"))


@_number("injected through a template by hand", "control ids whose bytes are the text's, f-string template, user text")
def injected_template(tokenizer: Any, library: Any, text: str) -> int:
    """The same text in the simplest template that people write."""
    return int(_encoded(text, "user", "template").injected)


@_number("image placeholders that the text takes, API layer", "placeholders made of the text's characters", "placeholder", _BOTH)
def placeholders_by_api(tokenizer: Any, library: Any) -> int:
    """Text and image as parts of a request."""
    from inside_deepinfer.tokens.placeholders import by_api

    return by_api().in_text


@_number("image placeholders that the text takes, message by hand", "placeholders made of the text's characters", "placeholder",
         _BOTH)
def placeholders_by_hand(tokenizer: Any, library: Any) -> int:
    """Text and marker joined into one string for ``UserMessage``."""
    from inside_deepinfer.tokens.placeholders import by_hand

    return by_hand().in_text


@_number("kinds of output tried", "entries of the table of outputs", "output", _BOTH)
def output_cases(tokenizer: Any, library: Any) -> int:
    """Real and spelled markers, tool calls, stop strings, turn markers."""
    from inside_deepinfer.tokens.output import OUTPUTS

    return len(OUTPUTS)


@_number("kinds of output that end differently as text", "outputs whose thought, answer or calls differ by ids and by text",
         "output", _BOTH)
def output_cases_that_differ(tokenizer: Any, library: Any) -> int:
    """The characters are the same both ways."""
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids, by_text

    return sum(by_ids(output) != by_text(output) for output in OUTPUTS.values())


@_number("tool calls run for markup that was only quoted, as text", "calls of the two quoting outputs", "call", _BOTH)
def quoted_calls_by_text(tokenizer: Any, library: Any) -> int:
    """The answer quotes a log; the thought quotes a page."""
    from inside_deepinfer.tokens.output import OUTPUTS, by_text

    return sum(len(by_text(OUTPUTS[name]).tool_calls) for name in ("quoted-call", "call-in-thought"))


@_number("tool calls run for markup that was only quoted, as ids", "calls of the two quoting outputs", "call", _BOTH)
def quoted_calls_by_ids(tokenizer: Any, library: Any) -> int:
    """None: ordinary tokens that spell markup are prose."""
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids

    return sum(len(by_ids(OUTPUTS[name]).tool_calls) for name in ("quoted-call", "call-in-thought"))


@_number("control tokens that a quoting answer puts into the next prompt", "injected by an answer with a quoted tool call, as history",
         uses=_BOTH)
def replayed_whole_prompt(tokenizer: Any, library: Any) -> int:
    """The client sends the answer back with the next request, and the prompt is encoded as a whole."""
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids, replayed

    return replayed(by_ids(OUTPUTS["quoted-call"]).content, "whole-prompt")
