"""Fixtures that several test files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# the same examples on every machine, and no clock: a busy machine is no failure
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")



@pytest.fixture(scope="module")
def chrome() -> Iterator[object]:
    """A browser for one test file; closed after it, because playwright's loop must not outlive its tests."""
    from browser import launched

    with launched() as browser:
        yield browser


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are named by their length: compressed ones hold the time of day, and two workers would collect different tests."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None
