"""Places of an API request that can carry somebody else's text into the prompt.

Each carrier builds a Chat Completions request around the text, as a client would send it. The rest of the request is short and
fixed: one earlier tool call with empty arguments where a tool is involved, thinking on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inside_deepinfer.facts import InputError, NotPossible
from inside_deepinfer.tokens.spellings import How, Spelled

Body = dict[str, Any]

QUESTION = "What does the file say?"
TOOL = "read_file"
RESULT_OPENS, RESULT_CLOSES = "<tool_result>", "</tool_result>"  # V4.1 and our template: ordinary text
PIXEL = "data:image/png;base64,iVBORw0KGgo="  # never decoded here: only its place in the prompt matters


@dataclass(frozen=True)
class Carrier:
    """One place of a request.

    Attributes:
        make: builds the request from the message contents (one entry unless the text is split).
        splits: in which ways the text can be split here.
        raw: how JSON that is already escaped is put in, where the carrier takes JSON text.
        closes: what ends this place in the prompt where that is ordinary text, which the text can spell.
    """

    name: str
    label: str
    doc: str
    make: Callable[[list[Any]], Body]
    splits: frozenset[How] = frozenset()
    raw: Callable[[str], Body] | None = None
    closes: str = ""

    def body(self, spelled: Spelled) -> Body:
        """The request that carries a text; a way of splitting that has no place here is :class:`NotPossible`."""
        if spelled.how != "text" and spelled.how not in self.splits:
            raise NotPossible(f"{self.label} cannot be split over {spelled.how}")
        if spelled.how == "messages":
            return self.make(list(spelled.parts))
        if spelled.how == "parts":
            return self.make([[{"type": "text", "text": part} for part in spelled.parts]])
        (text,) = spelled.parts
        return self.raw(spelled.raw) if spelled.raw and self.raw else self.make([text])


def _chat(*messages: Body, **more: Any) -> Body:
    return {"model": "DeepSeek-V4.1-Flash", "messages": list(messages), **more}


def _user(content: Any = QUESTION) -> Body:
    return {"role": "user", "content": content}


def _call(arguments: str = "{}", **more: Any) -> Body:
    function = {"name": TOOL, "arguments": arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call], **more}


def _result(content: Any = "ok") -> Body:
    return {"role": "tool", "tool_call_id": "call_1", "content": content}


def _tool(name: str = TOOL, description: str = "Reads a file.", parameter: str = "path") -> Body:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _schema(text: str) -> Body:
    wanted = {"name": "answer", "schema": {"type": "object", "description": text}}
    return _chat(_user(), response_format={"type": "json_schema", "json_schema": wanted})


_BOTH: frozenset[How] = frozenset(("parts", "messages"))
_PARTS: frozenset[How] = frozenset(("parts",))

_ALL = (
    Carrier("user", "user text", "What the user wrote.", lambda texts: _chat(*map(_user, texts)), _BOTH),
    Carrier("system", "system text", "The system prompt, often filled from a data base.",
            lambda texts: _chat(*({"role": "system", "content": text} for text in texts), _user()), _BOTH),
    Carrier("tool-name", "tool name", "The name in a tool definition, e.g. from a tool server of somebody else.",
            lambda texts: _chat(_user(), tools=[_tool(name=texts[0])])),
    Carrier("tool-description", "tool description", "The description in a tool definition.",
            lambda texts: _chat(_user(), tools=[_tool(description=texts[0])])),
    Carrier("tool-parameter", "parameter name", "A key of a tool's parameter schema.",
            lambda texts: _chat(_user(), tools=[_tool(parameter=texts[0])])),
    Carrier("tool-arguments", "tool-call arguments", "Arguments of an earlier tool call, which the model wrote.",
            lambda texts: _chat(_user(), _call(json.dumps({"path": texts[0]}, ensure_ascii=False)), _result()),
            raw=lambda text: _chat(_user(), _call('{"path": "' + text + '"}'), _result())),
    Carrier("tool-result", "tool result", "What a tool gave back: a web page, a file, a mail.",
            lambda texts: _chat(_user(), _call(), _result(texts[0])), _PARTS, closes=RESULT_CLOSES),
    Carrier("assistant", "assistant history", "An earlier answer of the model, sent back by the client.",
            lambda texts: _chat(_user(), *({"role": "assistant", "content": text} for text in texts), _user()), _BOTH),
    Carrier("reasoning", "reasoning history", "Earlier reasoning, sent back by the client; kept only where tools are defined.",
            lambda texts: _chat(_user(), _call(reasoning_content=texts[0]), _result(), tools=[_tool()])),
    Carrier("json-schema", "JSON schema text", "A description in the schema of the wanted answer.",
            lambda texts: _schema(texts[0])),
    Carrier("image", "text beside an image", "User text in a message with an image, whose placeholder is a control token.",
            lambda texts: _chat(_user([{"type": "text", "text": texts[0]},
                                       {"type": "image_url", "image_url": {"url": PIXEL}}]))),
)
CARRIERS: dict[str, Carrier] = {carrier.name: carrier for carrier in _ALL}


def carrier_of(name: str) -> Carrier:
    """The carrier called ``name``."""
    if name not in CARRIERS:
        raise InputError("carrier", name, ", ".join(CARRIERS))
    return CARRIERS[name]
