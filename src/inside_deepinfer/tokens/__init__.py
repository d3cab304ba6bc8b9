"""The control-token laboratory: real tokenizer, real API layer, the reader's own text. Importing this loads neither."""

from typing import Any

_PLACES = {"encode": "laboratory", "PIPELINES": "pipelines", "CARRIERS": "carriers", "SPELLINGS": "spellings"}

__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    """``tokens.encode`` and the tables of pipelines, carriers and spellings, loaded when asked for."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(name)
