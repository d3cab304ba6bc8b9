"""Numbers for one name or for an array of names, and results that are plain numbers where the inputs were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def by_name(names: Any, value_of: Callable[[str], Any]) -> Any:
    """``value_of`` a name, or of each name of an array; every distinct name is asked for once."""
    known, where = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    found = np.asarray([value_of(str(name)) for name in known])
    return found[0].item() if np.ndim(names) == 0 else found[where].reshape(np.shape(names))


def scalar(found: Any) -> Any:
    """A plain number for an array without dimensions; any other array as it is."""
    return found if np.ndim(found) else np.asarray(found).item()
