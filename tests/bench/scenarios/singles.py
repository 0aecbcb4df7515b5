"""Crates, Go modules, charts and plain files: what their clients read, beside nginx with the same bytes, and nora."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from tests.bench.arena import CPU, Arena, Goal, Scenario, Trial
from tests.bench.clients.load import CARGO_CLIENT, CURL, GO_CLIENT, HELM_CLIENT, post_all
from tests.bench.contestants.pkgrepo import SINGLES
from tests.bench.contestants.server import Contestant, Nginx
from tests.bench.packages.singles import CARGO, GO, HELM, RAW, Kind

from .figures import READ, reading

FLOOR: Final = Nginx.name
NAME: Final = "bench-read"
VERSIONS: Final = tuple(f"1.{number}.0" for number in range(10))
MANY: Final = 100  # charts in the index, of ten versions each
HEADERS: Final[Mapping[str, Mapping[str, str]]] = {
    CARGO.name: CARGO_CLIENT,
    GO.name: GO_CLIENT,
    HELM.name: HELM_CLIENT,
    RAW.name: CURL,
}


def fill(server: Contestant, kind: Kind) -> None:
    """Publish ten versions of one package; of charts, whose index has all of them, those of a hundred."""
    root = urlsplit(server.place(kind.name)).path
    names = [NAME, *(f"bench-more-{number}" for number in range(1, MANY) if kind is HELM)]
    post_all(server.target(kind.name), [kind.post(root, each, version) for each in names for version in VERSIONS], 1)


def _read(
    kind: Kind,
    name: str,
    about: str,
    path: Callable[[Kind], str],
    *peers: str,
    revalidate: Literal["no", "must"] = "no",
    made: bool = False,
) -> Scenario:
    """Reads of one address; what is ``made`` for each request has no goal."""
    ours = SINGLES[kind.name].name

    def prepare(arena: Arena, name: str) -> Trial:
        source: Contestant = arena.get(ours if name == FLOOR else name)
        arena.once((source.name, kind.name), lambda: fill(source, kind))
        url = f"{source.place(kind.name)}{path(kind)}"
        return reading(arena, name, url, HEADERS[kind.name], revalidate=revalidate)

    goals = () if made else (Goal(CPU, "at most", 1.5, FLOOR),)
    return Scenario(f"{kind.name}-{name}", about, (ours, FLOOR, *peers), READ, prepare, kind.name, goals)


def _document(kind: Kind) -> str:
    return kind.document(NAME)


def _file(kind: Kind) -> str:
    return kind.file(NAME, VERSIONS[-1])


SCENARIOS: tuple[Scenario, ...] = (
    _read(CARGO, "index", "index of a crate with 10 versions", _document, "nora"),
    _read(CARGO, "index-304", "the same, unchanged", _document, revalidate="must"),
    _read(CARGO, "config", "config.json of the index", lambda _: "/index/config.json", made=True),
    _read(CARGO, "crate", "crate of 9 KB", _file, "nora"),
    _read(GO, "list", "list of the versions of a module", _document),
    _read(GO, "mod", "go.mod of a version", lambda kind: _file(kind).replace(".zip", ".mod")),
    _read(GO, "zip", "module of 9 KB", _file),
    _read(HELM, "index", "index.yaml of 1,000 charts", _document),
    _read(HELM, "chart", "chart of 9 KB", _file),
    _read(RAW, "file", "file of 8 KB", _file, "nora"),
    _read(RAW, "sum", "its checksum beside it", lambda kind: f"{_file(kind)}.sha256"),
)
