"""A server with a private repository of each format, and a home of a new user who has logged in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.configurations import PRIVATE, hosted
from tests.support.server_process import ServerProcess
from tests.support.setup_bench import SetupBench

FORMATS = {"npm": "node", "python": "py", "docker": "images", "maven": "java", "ruby": "gems", "conda": "channel"}
FORMATS |= {"cargo": "crates", "helm": "charts"}


@pytest.fixture(scope="module")
def configuration() -> str:
    """The repositories, all of which need a login but that of go, which sends none without TLS."""
    private = "".join(hosted(format_, **{name: PRIVATE}) for format_, name in FORMATS.items())
    return private + hosted("go", "modules")


@pytest.fixture
def new_user(server: ServerProcess, tmp_path: Path) -> Callable[..., SetupBench]:
    """Make a bench of a user who has logged in, with these programs on the path: names of clients."""

    def make(*clients: str, **variables: str) -> SetupBench:
        return SetupBench(tmp_path, server.url, clients, variables)

    return make
