"""Errors a reader can act on: each names what was given and what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np


class UserError(Exception):
    """Base of every error that the command line prints as one line, without a traceback."""


class FactError(UserError):
    """Something in ``data/`` is damaged; names file, entry and field."""

    def __init__(self, file: str, entry: str, field: str, problem: str):
        self.file, self.entry, self.field, self.problem = file, entry, field, problem
        where = ", ".join(part for part in (file, entry and f"entry {entry}", field and f"field {field}") if part)
        super().__init__(f"{where}: {problem}")


class InputError(UserError, ValueError):
    """An argument is outside its range; names parameter, value and allowed range."""

    def __init__(self, parameter: str, value: Any, allowed: str):
        self.parameter, self.value, self.allowed = parameter, value, allowed
        super().__init__(f"{parameter} = {_short(value)} is not possible: allowed is {allowed}")


class NotPossible(UserError, ValueError):
    """A scenario that cannot exist (does not fit, unstable); the message is the reason."""


def require(ok: Any, parameter: str, value: Any, allowed: str) -> None:
    """Raise :class:`InputError` unless ``ok`` holds for every element."""
    if not np.all(ok):
        raise InputError(parameter, value, allowed)


def require_between(parameter: str, value: Any, low: float, high: float) -> Any:
    """Return ``value`` if every element lies in [low, high] (NaN never does)."""
    numbers = _numbers(parameter, value, f"{low:g} to {high:g}")
    require((numbers >= low) & (numbers <= high), parameter, value, f"{low:g} to {high:g}")
    return value if np.ndim(value) == 0 else numbers


def require_positive(parameter: str, value: Any) -> Any:
    """Return ``value`` if every element is finite and above zero."""
    numbers = _numbers(parameter, value, "a finite number above 0")
    require(np.isfinite(numbers) & (numbers > 0), parameter, value, "a finite number above 0")
    return value if np.ndim(value) == 0 else numbers


def require_not_negative(parameter: str, value: Any) -> Any:
    """Return ``value`` if every element is finite and at least zero."""
    numbers = _numbers(parameter, value, "a finite number of at least 0")
    require(np.isfinite(numbers) & (numbers >= 0), parameter, value, "a finite number of at least 0")
    return value if np.ndim(value) == 0 else numbers


def _numbers(parameter: str, value: Any, allowed: str) -> np.ndarray:
    if value is None or isinstance(value, (str, bytes)):
        raise InputError(parameter, value, allowed)
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(parameter, value, allowed) from None


def _short(value: Any) -> str:
    text = "missing" if value is None else repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else text[:57] + "..."
