"""
Pages of the console, asked for by a browser one after the other.

The first view is a page with the style sheet, the script and the picture that it names, as they are on the wire.
Probes of another page that needs no catalog tell how long the reactor was busy with a page at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tests.bench.arena import P50, P99, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import first_bytes, get, percentile
from tests.bench.contestants.sizes import PkgrepoConsole
from tests.bench.measure import Watch

from .figures import figures, probed

OURS: Final = PkgrepoConsole.name
BROWSER: Final = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip",
}
VIEWS: Final = 200  # of a page in a round
SLOW_VIEWS, PAUSE_S = 40, 0.1  # while probes are sent, which would otherwise wait for one page after the other
PROBES_PER_S: Final = 100.0
REPOSITORY: Final = "/ui/repositories/main/py"
MANY: Final = f"{REPOSITORY}/packages/many"
CPU_MS = Metric("cpu_ms", "CPU ms/page", 2)
FIRST_VIEW = Metric("first_view_kb", "first view kB", 1)
STALL = Metric("stall_ms", "p99 ms of probes beside", 2)

_ASSET: Final = re.compile(rb'(?:href|src)="(/ui/static/[^"]+)"')


def _viewing(path: str, click: str = "") -> Callable[[Arena, str], Trial]:
    """Prepare views of a page; with ``click``, of the page to which its link with this ``rel`` leads."""

    def prepare(arena: Arena, _name: str) -> Trial:
        server = arena.get(OURS)
        url = f"{server.base_url}{path}"
        plain = {**BROWSER, "Accept-Encoding": "identity"}
        if click:
            found = re.search(rf'<a rel="{click}" href="([^"]+)"'.encode(), get(url, plain).body)
            assert found, f"{url} has no link {click}"
            url = url.partition("?")[0] + found[1].decode().replace("&amp;", "&")
        assets = set(_ASSET.findall(get(url, plain).body))
        first_view = len(get(url, BROWSER).body)
        first_view += sum(len(get(f"{server.base_url}{each.decode()}", BROWSER).body) for each in assets)

        def trial(_: int) -> Mapping[str, float]:
            with Watch(server.tree) as watch:
                took_ms = first_bytes([url] * VIEWS, BROWSER)
            beside = probed(f"{server.base_url}/healthz", {}, PROBES_PER_S, partial(view_slowly, url))
            return {**figures(watch, took_ms), FIRST_VIEW.key: first_view / 1e3, STALL.key: percentile(beside, 99)}

        return trial

    return prepare


def view_slowly(url: str) -> None:
    """View a page again and again, with pauses."""
    for _ in range(SLOW_VIEWS):
        time.sleep(PAUSE_S)
        first_bytes([url], BROWSER)


def _page(name: str, about: str, path: str, click: str = "", most_ms: float = 20) -> Scenario:
    return Scenario(
        name=f"console-{name}",
        about=about,
        lineup=(OURS,),
        metrics=(P50, P99, CPU_MS, FIRST_VIEW, STALL),
        prepare=_viewing(path, click),
        stock="console",
        goals=(Goal(P50, "at most", most_ms), Goal(P99, "at most", 80), Goal(FIRST_VIEW, "at most", 60)),
    )


SCENARIOS: tuple[Scenario, ...] = (
    _page("home", "the first page", "/ui/"),
    _page("search", "a search for one of 100,000 packages", "/ui/search?q=filler-77777", most_ms=50),
    _page("search-all", "a search for a text that 100,000 packages have", "/ui/search?q=fill", most_ms=50),
    _page("packages", "the list of 100,000 packages", REPOSITORY),
    _page("packages-next", "its second page, by time of change", f"{REPOSITORY}?sort=-updated_at", "next"),
    _page("packages-filter", "packages with 777 in their names, by downloads", f"{REPOSITORY}?sort=-downloads&q=777"),
    _page("package", "a package of 5,000 versions", MANY),
    _page("versions", "the second page of its versions", f"{MANY}/versions", "next"),
    _page("versions-time", "its versions by time", f"{MANY}/versions?sort=-published_at"),
    _page("files", "the files of a version", f"{MANY}/versions/1.7.0/files"),
    _page("tree", "the folders of the repository", f"{REPOSITORY}/tree/"),
)
