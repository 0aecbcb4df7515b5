"""Python packages: reads and uploads as pip, uv and twine make them, beside other servers and beside nginx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.bench.arena import CPU, GROWTH, OURS, P50, P99, RATE, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import (
    FILE,
    HTML,
    PIP,
    LoadFailed,
    download,
    post_all,
    post_file,
    write_turns,
)
from tests.bench.contestants.python import PythonIndex, form_fields, form_post
from tests.bench.measure import MIB, Watch
from tests.bench.packages.wheels import Wheel, wheels

from .figures import READ, SPEED, UPLOADS, WRITTEN, ask, asking, figures, mirrored

PEERS = (OURS, "nginx", "pypiserver", "devpi", "nora")
UPLOADED = (OURS, "pypiserver", "devpi", "nora")
GIB_FILE = (1 << 30) - (
    1 << 16
)  # bytes; devpi accepts request bodies of up to 1 GiB, including the form around the file
DOWNLOADS = 5  # in a round: one of them is short against the clock's tick of 10 ms

CPU_MS = Metric("cpu_ms", "CPU ms/file", 1)

AGENTS = ("pip/26.3", "pip/24.0", "pip/23.2.1", "uv/0.13.8", "poetry/2.5.1")  # what tells caches of heads apart

Address = Callable[[PythonIndex], str]


def stocked(arena: Arena, name: str, stock: Sequence[Wheel]) -> PythonIndex:
    """Return a contestant that has these packages."""
    contestant = arena.get(name, PythonIndex)
    arena.once((name, stock[0].filename), lambda: contestant.publish(stock))
    return contestant


def _reading(
    stock: Sequence[Wheel], address: Address, headers: Mapping[str, str], *, revalidate: bool = False
) -> Callable[[Arena, str], Trial]:
    """Prepare one address to be asked for again and again; C{revalidate} sends the validator of its first answer."""

    def prepare(arena: Arena, name: str) -> Trial:
        sent = dict(headers)
        source = stocked(arena, arena.first(PEERS) if name == "nginx" else name, stock)
        url = mirrored(arena, name, address(source), sent)
        validator = ask(url, sent).headers.get("etag")
        if revalidate and validator is not None:
            sent["If-None-Match"] = validator
            ask(url, sent, 304)
        return asking(arena, name, url, sent)

    return prepare


def _mixed(arena: Arena, name: str) -> Trial:
    projects = [f"bench-mixed-{number}" for number in range(200)]
    stock = [wheel for project in projects for wheel in wheels(project, 3)]
    source = stocked(arena, arena.first(PEERS) if name == "nginx" else name, stock)
    urls = [mirrored(arena, name, source.page_url(project), PIP) for project in projects]
    return asking(arena, name, urls[0], PIP, write_turns(arena.scratch / f"{name}.turns", urls, AGENTS))


def _page(project: str) -> Address:
    return lambda server: server.page_url(project)


def _page_scenario(
    count: int, *, html: bool = False, goals: tuple[Goal, ...] = (), lineup: tuple[str, ...] = PEERS
) -> Scenario:
    project = f"bench-{count}"
    return Scenario(
        name=f"simple-{count}-html" if html else f"simple-{count}",
        about=f"simple page of {count:,} files, {'as HTML' if html else 'as pip asks for it'}",
        lineup=lineup,
        metrics=READ,
        prepare=_reading(wheels(project, count), _page(project), HTML if html else PIP),
        stock="twenty" if count == 20 else f"{count}",
        goals=goals,
    )


def _download(arena: Arena, name: str) -> Trial:
    wheel = Wheel("bench-gib", "1.0.0", GIB_FILE)
    if name == "nginx":
        url = arena.nginx().mirror(wheel.filename, wheel.ensure(arena.cache))
    else:
        url = stocked(arena, name, [wheel]).file_url(wheel)
    if download(url) != wheel.size:
        raise LoadFailed(f"{url}: another size than was uploaded")

    def trial(_: int) -> Mapping[str, float]:
        with Watch(arena.get(name).tree) as watch:
            size = sum(download(url) for _ in range(DOWNLOADS))
        return figures(watch, count=DOWNLOADS, size=size)

    return trial


def _upload_large(arena: Arena, name: str) -> Trial:
    server = stocked(arena, name, wheels("bench-20", 20))

    def trial(number: int) -> Mapping[str, float]:
        wheel = Wheel("bench-large", f"1.0.{number}", 100 * MIB)
        path = wheel.ensure(arena.scratch / "uploads")
        fields = form_fields(wheel)
        with Watch(server.tree) as watch:
            post_file(path, fields, server.upload_target)
        return figures(watch, size=wheel.size)

    return trial


def _upload_small(arena: Arena, name: str) -> Trial:
    server = stocked(arena, name, wheels("bench-20", 20))

    def trial(number: int) -> Mapping[str, float]:
        posts = [form_post(each) for each in _assorted(number, projects=20, versions=10)]
        with Watch(server.tree) as watch:
            took_ms = post_all(server.upload_target, posts, 8)
        return figures(watch, took_ms)

    return trial


def _assorted(number: int, *, projects: int, versions: int) -> list[Wheel]:
    """Wheels of several projects, the versions of one far apart."""
    return [
        Wheel(f"bench-small-{number}-{project}", f"1.0.{version}")
        for version in range(versions)
        for project in range(projects)
    ]


_SMALL = wheels("bench-20", 20)

SCENARIOS: tuple[Scenario, ...] = (
    _page_scenario(
        20,
        goals=(
            Goal(CPU, "at most", 4, "nginx"),
            Goal(RATE, "at least", 8, "devpi"),
            Goal(RATE, "at least", 5, "pypiserver"),
        ),
    ),
    _page_scenario(20, html=True),
    Scenario(
        name="not-modified",
        about="unchanged simple page of 20 files (pypiserver and devpi have no validator and send it again)",
        lineup=PEERS,
        metrics=READ,
        prepare=_reading(_SMALL, _page("bench-20"), PIP, revalidate=True),
        stock="twenty",
    ),
    Scenario(
        name="metadata",
        about="core metadata of a wheel",
        lineup=PEERS,
        metrics=READ,
        prepare=_reading(_SMALL, lambda server: server.file_url(_SMALL[0]) + ".metadata", FILE),
        stock="twenty",
    ),
    Scenario(
        name="small-file",
        about="wheel of 9 KB",
        lineup=PEERS,
        metrics=READ,
        prepare=_reading(_SMALL, lambda server: server.file_url(_SMALL[0]), FILE),
        stock="twenty",
    ),
    _page_scenario(300),
    Scenario(
        name="simple-mixed",
        about="simple pages of 200 projects in turn, for clients of five kinds",
        lineup=PEERS,
        metrics=READ,
        prepare=_mixed,
        stock="mixed",
    ),
    # Without devpi, in which an upload costs time proportional to the project's files; 5,000 take over an hour.
    _page_scenario(5000, lineup=(OURS, "nginx", "pypiserver")),
    Scenario(
        name="download-1g",
        about="wheel of 1 GiB, read by curl",
        lineup=PEERS,
        metrics=(SPEED, CPU_MS, GROWTH),
        prepare=_download,
        stock="download-1g",
        goals=(Goal(CPU_MS, "at most", 1.3, "nginx"),),
    ),
    Scenario(
        name="upload-100m",
        about="upload of a 100 MiB wheel as a form, by curl",
        lineup=UPLOADED,
        metrics=(SPEED, CPU_MS, GROWTH, WRITTEN),
        prepare=_upload_large,
        stock="upload-100m",
    ),
    Scenario(
        name="upload-small",
        about="200 uploads of 9 KB as forms, by 8 clients at once, into 20 new projects",
        lineup=UPLOADED,
        metrics=(UPLOADS, CPU_MS, P50, P99, GROWTH),
        prepare=_upload_small,
        stock="upload-small",
    ),
)
