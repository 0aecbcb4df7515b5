"""The services of ``pkgrepo.auth`` over a catalog in memory."""

from __future__ import annotations

import pytest

from tests.support.auth import AuthServices


@pytest.fixture
def scene() -> AuthServices:
    """Services without users, whose clock stands still."""
    return AuthServices()
