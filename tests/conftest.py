"""Fixtures that several test files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def chrome() -> Iterator[object]:
    """A browser for one test file; closed after it, because playwright's loop must not outlive its tests."""
    from browser import launched

    with launched() as browser:
        yield browser
