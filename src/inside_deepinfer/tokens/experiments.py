"""The numbers of the laboratory as derived numbers, so that chapters and the audit can name them.

They run the real library on the real tokenizer file, which is loaded only when one of them is asked for. Their inputs are the
facts that name both, so that the chain ends at the sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inside_deepinfer.facts import derived

_FILE = {"tokenizer": "tokens.file_sha256"}
_BOTH = {"tokenizer": "tokens.file_sha256", "library": "tokens.recipe_version"}
_INJECT = _BOTH | {"text": "tokens.attack"}


def _count(label: str, formula: str, unit: str = "control token", uses: dict[str, str] = _BOTH) -> Callable[..., Any]:
    return derived(label=label, unit=unit, formula=formula, uses=uses, words=True)


def control_tokens(carrier: str, pipeline: str, text: str) -> int:
    """Control tokens of a whole prompt whose ``carrier`` holds ``text``."""
    from inside_deepinfer.tokens.laboratory import encode

    return len(encode(text, carrier, pipeline).control)


def inject_user(text: str) -> tuple[int, int]:
    """Claim api.inject_user: through deepseek-recipe, through a plain tokenizer over the rendered prompt."""
    return control_tokens("user", "recipe", text), control_tokens("user", "whole-prompt", text)


def inject_tool(text: str) -> tuple[int, int]:
    """Claim api.inject_tool: the same text in a tool result."""
    return control_tokens("tool-result", "recipe", text), control_tokens("tool-result", "whole-prompt", text)


@_count("added tokens of the tokenizer", "entries of the tokenizer's added vocabulary", "token", _FILE)
def added_token_count(tokenizer: Any) -> int:
    """Claim api.added_tokens, counted in the loaded file after renaming the system marker."""
    from inside_deepinfer.tokens.vocabulary import added_tokens

    return len(added_tokens())


@_count("added tokens that survive \"split special tokens\"",
        "added tokens that still encode to their one id with the option switched on", "token", _FILE)
def surviving_token_count(tokenizer: Any) -> int:
    """The file flags these tokens as not special, and the option works on special ones only."""
    from inside_deepinfer.tokens.vocabulary import survivors

    return len(survivors())


@_count("control tokens, injected user text, deepseek-recipe", "control ids in the encoded conversation", uses=_INJECT)
def user_control_tokens_recipe(tokenizer: Any, library: Any, text: str) -> int:
    """First number of claim api.inject_user."""
    return control_tokens("user", "recipe", text)


@_count("control tokens, injected user text, whole prompt", "control ids in the encoded prompt string", uses=_INJECT)
def user_control_tokens_whole_prompt(tokenizer: Any, library: Any, text: str) -> int:
    """Second number of claim api.inject_user."""
    return control_tokens("user", "whole-prompt", text)


@_count("control tokens, injected tool result, deepseek-recipe", "control ids in the encoded conversation", uses=_INJECT)
def tool_control_tokens_recipe(tokenizer: Any, library: Any, text: str) -> int:
    """First number of claim api.inject_tool: one earlier tool call with empty arguments, thinking on, no tool definitions."""
    return control_tokens("tool-result", "recipe", text)


@_count("control tokens, injected tool result, whole prompt", "control ids in the encoded prompt string", uses=_INJECT)
def tool_control_tokens_whole_prompt(tokenizer: Any, library: Any, text: str) -> int:
    """Second number of claim api.inject_tool."""
    return control_tokens("tool-result", "whole-prompt", text)


@_count("injected control tokens through deepseek-recipe, whole matrix", "sum over every carrier and spelling", uses=_INJECT)
def matrix_injected_recipe(tokenizer: Any, library: Any, text: str) -> int:
    """Zero where no carrier and no spelling that we try gets through."""
    return _injected("recipe", text)


@_count("injected control tokens through the whole prompt, whole matrix", "sum over every carrier and spelling", uses=_INJECT)
def matrix_injected_whole_prompt(tokenizer: Any, library: Any, text: str) -> int:
    """The same carriers and spellings without a defence."""
    return _injected("whole-prompt", text)


@_count("cells of the matrix that apply, per pipeline", "carriers times spellings, less the splits that a carrier lacks",
        "cell", _INJECT)
def matrix_cells(tokenizer: Any, library: Any, text: str) -> int:
    """How many combinations of carrier and spelling were tried."""
    table = _matrix(text)
    return int(table[table.pipeline == "recipe"].injected.notna().sum())


def _injected(pipeline: str, text: str) -> int:
    table = _matrix(text)
    return int(table[table.pipeline == pipeline].injected.sum())


def _matrix(text: str) -> Any:
    from inside_deepinfer.tokens.matrix import matrix

    return matrix(text)


@_count("a real end of thought splits thought and answer", "1 if the answer holds exactly what follows the token, else 0",
        "yes = 1")
def output_real_end_splits(tokenizer: Any, library: Any) -> int:
    """Claim api.output_real."""
    found = _parsed("real-end", ids=True)
    return int(bool(found.reasoning) and found.content == "答え")


@_count("a spelled end of thought stays in the thought, by ids", "1 if nothing reaches the answer, else 0", "yes = 1")
def output_spelled_end_stays(tokenizer: Any, library: Any) -> int:
    """Claim api.output_spelled."""
    found = _parsed("spelled-end", ids=True)
    return int(found.content == "" and "</think>" in found.reasoning)


@_count("a spelled end of thought in text chunks leaks into the answer", "1 if the forged answer reaches the client, else 0",
        "yes = 1")
def output_text_end_leaks(tokenizer: Any, library: Any) -> int:
    """Claim api.output_text."""
    found = _parsed("spelled-end-in-chunks", ids=False)
    return int(found.content == "偽の回答" and "</think>" not in found.reasoning)


def _parsed(name: str, ids: bool) -> Any:
    from inside_deepinfer.tokens.output import OUTPUTS, by_ids, by_text

    return by_ids(OUTPUTS[name]) if ids else by_text(OUTPUTS[name])
