"""Servers with repositories of one format, tokens, and upstreams that the tests fill: one for each room of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.configurations import hosted, tokens
from tests.support.python_index import USER
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.server import ScriptedUpstream

Scopes = Mapping[str, tuple[str, Sequence[str], Sequence[str]]]


@frozen(eq=False)
class Plan:
    """
    What a room's server has.

    ``hosted`` maps the names of hosted repositories to further lines of their sections; the first one is that of most
    tests. ``scopes`` are those of tokens, see ``configurations.tokens``. ``proxies`` gets the ``upstreams``, which run,
    and returns the sections of proxy and virtual repositories. ``max_upload`` is in bytes; ``lines`` are further
    settings, and ``files`` are written into the server's working directory. ``begin`` gets the running server.
    """

    format: str
    hosted: Mapping[str, str]
    scopes: Scopes = field(factory=dict)
    max_upload: int = 10 * 1024**3
    lines: str = ""
    files: Mapping[str, str] = field(factory=dict)
    begin: Callable[[ServerProcess], object] = str
    upstreams: Mapping[str, Callable[[], Any]] = field(factory=dict)
    proxies: Callable[..., Iterable[str]] = lambda **_: ()


@frozen(eq=False)
class World:
    """A running server, the texts of its tokens, and its upstreams."""

    plan: Plan
    server: ServerProcess
    tokens: Mapping[str, str]
    upstreams: Mapping[str, ScriptedUpstream]


@define(eq=False)
class Worlds:
    """Starts the world of each plan once; ``folder`` makes an empty folder with a name."""

    folder: Callable[[str], Path]
    stack: ExitStack
    _made: dict[Plan, World] = field(factory=dict)

    def of(self, plan: Plan) -> World:
        """Return the world of a plan."""
        if plan not in self._made:
            folder = self.folder("format_server")
            for name, text in plan.files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            upstreams = {name: self.stack.enter_context(make()) for name, make in plan.upstreams.items()}
            texts = new_tokens(plan.scopes)
            lines = plan.lines + ('proxy.allow_private = ["127.0.0.1"]\n' if upstreams else "")
            sections = "".join(plan.proxies(**upstreams))
            limits: Any = {"max_upload": plan.max_upload, "lines": lines, "sections": sections}
            served = serving(folder, plan.format, plan.hosted, plan.scopes, texts, **limits)
            server = self.stack.enter_context(served)
            plan.begin(server)
            self._made[plan] = World(plan, server, texts, upstreams)
        return self._made[plan]


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
    sections: str = "",
) -> Iterator[ServerProcess]:
    """
    Run a server with these hosted repositories and tokens, see C{hosted} and C{tokens}.

    ``max_upload`` is in bytes; ``lines`` are further settings, ``sections`` those of other repositories.
    """
    head = f"server.max_upload = {max_upload}\nlimits.login_failures = 1000\n{lines}"
    configuration = head + hosted(format, **repositories) + sections + tokens(USER, texts, scopes)
    with running(folder, configuration) as process:
        yield process
