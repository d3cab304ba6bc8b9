"""Questions of the browser and their answers: one JSON message each way, nothing remembered in between."""

from __future__ import annotations

import json
from typing import Any

from inside_deepinfer.explorer import state, view
from inside_deepinfer.explorer.page import Page
from inside_deepinfer.facts import UserError

MAX_MESSAGE = 32_768
MAX_FRAME = 4 * 2**20  # bytes of one websocket message: a private text of 1 MiB with its escapes, unless nearly all of it is escapes


def opening(page: Page, query: str) -> str:
    """What the page starts with: its fixed part and the view of the address.

    Where the result has to be prepared, the browser asks for it once the page stands, so that nobody waits for it here.
    """
    now = state.read(query, page)
    first = view.pending(page, now) if page.prepare else view.view(page, now)
    return f'{{"page":{view.written(view.static(page.slug))},"view":{first}}}'


def answer(page: Page, message: Any) -> str:
    """The answer to one message; a message that makes no sense gets an answer that says so.

    Messages carry ``id``, ``op`` and ``query`` (the state they start from):
    ``view`` (``changes``: input -> text, ``preset`` among them; ``private``: values of private fields), ``chain`` and ``table`` (``name``),
    ``details`` (``table``, ``key``).
    """
    number: Any = None
    try:
        request = _checked(page, message)
        number = request["id"]
        return f'{{"id":{json.dumps(number)},{_reply(page, request)}}}'
    except UserError as error:
        problem = str(error)
    except Exception as error:
        view.log_failure(f"page {page.slug}: answer", error, page)
        problem = view.BROKEN
    return view.written(dict(id=number, problem=problem))


def busy(page: Page, message: Any) -> str:
    """The answer where too many others wait."""
    try:
        number = _checked(page, message)["id"]
    except UserError:
        number = None
    return view.written(dict(id=number, problem="too many texts are being encoded here; try again in a moment"))


def _reply(page: Page, request: dict[str, Any]) -> str:
    now = state.read(request["query"], page)
    if request["op"] == "chain":
        return f'"chain":{view.written(view.chain(page, now, str(request.get("name", ""))))}'
    if request["op"] == "table":
        return f'"table":{view.written(view.table(page, now, str(request.get("name", ""))))}'
    if request["op"] == "details":
        return f'"details":{view.written(view.details(page, now, str(request.get("table", "")), str(request.get("key", ""))))}'
    changes = request.get("changes") or {}
    # notices about an address are said once, when it is read; with a change only the change speaks
    after = state.change(now, page, changes) if changes else now
    after = state.with_private(after, page, request.get("private") or {})
    return f'"view":{view.view(page, after)}'


def most(page: Page) -> int:
    """Longest message: a private text has at most six characters of JSON for each byte."""
    return MAX_MESSAGE + 6 * sum(entry.max_bytes for entry in page.fields)


def _checked(page: Page, message: Any) -> dict[str, Any]:
    if not isinstance(message, str) or len(message) > most(page):
        raise UserError("the message is no text or too long")
    try:
        request = json.loads(message)
    except ValueError:
        raise UserError("the message is no JSON") from None
    if not isinstance(request, dict) or request.get("op") not in ("view", "chain", "table", "details"):
        raise UserError("the message asks for nothing we know")
    if not isinstance(request.get("query", ""), str) or not all(isinstance(request.get(part, {}), dict)
                                                                for part in ("changes", "private")):
        raise UserError("the message has parts of the wrong type")
    number = request.get("id")
    return dict(request, id=number if isinstance(number, int) else None, query=request.get("query", ""))
