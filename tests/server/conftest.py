"""
Clients of the server that the tests of a folder share.

The server is C{format_server}, which the conftest of the folder starts with the repositories that its tests need.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess


@pytest.fixture
def api(format_server: ServerProcess) -> HttpClient:
    """A client of the management API, with the admin's credentials."""
    return HttpClient(f"{format_server.url}/api", (USER, PASSWORD))


@pytest.fixture
def repository(format_server: ServerProcess) -> Callable[[str], HttpClient]:
    """Return a client of a repository by name, with the admin's credentials."""
    return lambda name: HttpClient(f"{format_server.url}/repositories/main/{name}", (USER, PASSWORD))
