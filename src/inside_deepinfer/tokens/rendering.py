"""From an API request to a prompt: by deepseek-recipe, and by a template written by hand as many projects have one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from deepseek_recipe import (
    ChatCompletionRequest,
    Conversation,
    ConversionError,
    ConversionOptions,
    ToolDefinition,
)

from inside_deepinfer.facts import NotPossible
from inside_deepinfer.tokens.carriers import RESULT_CLOSES, RESULT_OPENS, TOOL, Body
from inside_deepinfer.tokens.vocabulary import recipe_encoding

IMAGE = "<｜image｜>"  # default spelling of the image placeholder in deepseek-recipe 0.2.0


@dataclass(frozen=True)
class Rendered:
    """A prompt and where it came from.

    Attributes:
        conversation: deepseek-recipe's conversation, for its own encoder; None for a prompt made by hand.
        refusal: what the API layer answers instead, where it refuses the request.
    """

    prompt: str
    conversation: Conversation | None = None
    refusal: str = ""


def recipe(body: Body) -> Rendered:
    """The V4.1 prompt of deepseek-recipe.

    Where its API layer refuses the request for a tool's name, the conversation is built without that check, so that the encoder
    is tested too; ``refusal`` says so.
    """
    conversation, refusal = _conversation(body)
    return Rendered(recipe_encoding().render_conversation(conversation).prompt, conversation, refusal)


def _conversation(body: Body) -> tuple[Conversation, str]:
    try:
        return ChatCompletionRequest(body).convert(ConversionOptions()).conversation, ""
    except ConversionError as error:
        if not body.get("tools"):
            raise NotPossible(f"the API layer refuses the request: {error}") from None
        names = [tool["function"]["name"] for tool in body["tools"]]
        renamed = [{**tool, "function": {**tool["function"], "name": TOOL}} for tool in body["tools"]]
        plain = ChatCompletionRequest({**body, "tools": renamed}).convert(ConversionOptions()).conversation
        tools = [ToolDefinition(name, tool.description, tool.parameters)
                 for name, tool in zip(names, plain.tools, strict=True)]
        made = Conversation(plain.messages, thinking_mode=plain.thinking_mode, tools=tools, tool_choice=plain.tool_choice,
                            reasoning_effort=plain.reasoning_effort)
        return made, str(error)


def by_hand(body: Body) -> Rendered:
    """An f-string template with the same markers; parts of a message are joined without anything between them."""
    prompt = "<｜begin▁of▁sentence｜>"
    for message in body["messages"]:
        content = _joined(message["content"])
        if message["role"] == "system":
            prompt += content
        elif message["role"] == "user":
            prompt += f"<｜User｜>{content}"
        elif message["role"] == "tool":
            prompt += f"<｜User｜>{RESULT_OPENS}{content}{RESULT_CLOSES}"
        else:
            thought = f"<think>{message['reasoning_content']}" if message.get("reasoning_content") else ""
            calls = "".join(f"\n{call['function']['name']}({call['function']['arguments']})"
                            for call in message.get("tool_calls", ()))
            prompt += f"<｜Assistant｜>{thought}</think>{content}{calls}<｜end▁of▁sentence｜>"
    extra = [body[key] for key in ("tools", "response_format") if key in body]
    lines = "".join(f"\n{json.dumps(part, ensure_ascii=False)}" for part in extra)
    return Rendered(f"{prompt}{lines}<｜Assistant｜><think>")


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else IMAGE for part in content)
