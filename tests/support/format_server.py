"""A server process with hosted repositories of one format, and tokens of its admin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.configurations import hosted, tokens
from tests.support.python_index import USER
from tests.support.server_process import ServerProcess, running

Scopes = Mapping[str, tuple[str, Sequence[str], Sequence[str]]]


def new_tokens(names: Iterable[str]) -> dict[str, str]:
    """Return texts of new tokens by name."""
    return {name: make_token(TokenKind.CI) for name in names}


@contextmanager
def serving(
    folder: Path,
    format: str,
    repositories: Mapping[str, str],
    scopes: Scopes,
    texts: Mapping[str, str],
    *,
    max_upload: int,
    lines: str = "",
) -> Iterator[ServerProcess]:
    """
    Run a server with these repositories and tokens, see C{hosted} and C{tokens}.

    ``max_upload`` is in bytes; ``lines`` are further settings.
    """
    head = f"server.max_upload = {max_upload}\nlimits.login_failures = 1000\n{lines}"
    with running(folder, head + hosted(format, **repositories) + tokens(USER, texts, scopes)) as process:
        yield process
