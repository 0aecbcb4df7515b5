"""OpenLDAP's server for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.slapd import Slapd, directory


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """A directory with people and groups; tests that stop it start it again."""
    with directory(tmp_path_factory.mktemp("directory") / "slapd") as found:
        yield found
