"""
Proxies, each with an upstream of its own, and the upstreams themselves as what clients reach without a proxy.

An upstream answers each request 30 ms late. L{Proxy.cut} stops it.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from attrs import frozen

from tests.bench.clients.load import get, send_json
from tests.bench.clients.registry import Registry
from tests.bench.upstream import SENT

from .container import Distribution
from .npm import Verdaccio
from .pkgrepo import Pkgrepo
from .python import Devpi
from .server import LOOPBACK, ROOT, Contestant, variant, venv_program

LATENCY_MS = 30


@frozen
class Sent:
    """What an upstream was asked for: requests, and bytes of bodies."""

    requests: int
    bytes: int


class Source(Contestant):
    """Something to install from. ``mib`` is the size of the image in MiB, and five times that of the large wheel."""

    mib: ClassVar[int] = 1000

    def client(self, image: str) -> Registry:
        """The registry of an image."""
        return Registry(self.base_url, image)


class Direct(Source):
    """An upstream; ``kind`` says of what, see L{tests.bench.upstream}."""

    kind = ""

    def command(self) -> Sequence[str]:
        files = ROOT / ".cache" / "bench" / "files"
        return [
            sys.executable,
            "-m",
            "tests.bench.upstream",
            *(self.kind, str(self.port), str(LATENCY_MS), str(files), str(self.mib)),
        ]

    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": str(ROOT)}

    def sent(self) -> Sent:
        """What it was asked for so far."""
        return Sent(**json.loads(get(f"{self.base_url}{SENT}", {}).body))


UPSTREAMS: Final[Mapping[str, type[Direct]]] = {
    kind: variant(f"direct-{name}", Direct, kind=kind)
    for kind, name in (
        ("npm", "npm"),
        ("npm-huge", "huge"),  # has one package of 95 MB
        ("python", "python"),
        ("maven", "maven"),  # announces the SHA-1 of its files
        ("maven-silent", "maven-silent"),  # announces nothing, and has files of checksums
        ("images", "images"),
        ("images-line", "line"),  # sends blobs as fast as a line of 1 Gbit/s
        ("gems", "gems"),
    )
}


class Proxy(Source):
    """A proxy, which is empty when it starts; ``direct`` is the class of its upstream, of npm packages by default."""

    direct: type[Direct] = UPSTREAMS["npm"]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.upstream = self.direct(folder / "upstream")

    def start(self) -> None:
        self.upstream.start()
        try:
            super().start()
        except BaseException:
            self.upstream.stop()
            raise

    def stop(self) -> None:
        super().stop()
        self.upstream.stop()

    def cut(self) -> None:
        """Stop the upstream."""
        self.upstream.stop()


class PkgrepoProxy(Proxy, Pkgrepo):
    """A public repository of type Proxy; ``url_end`` is appended to the upstream's address."""

    format = ""
    url_end = ""
    rules: Sequence[Mapping[str, Any]] = ()

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_PROXY__ALLOW_PRIVATE": json.dumps([LOOPBACK])}

    def prepare(self) -> None:
        route = {"url": f"{self.upstream.base_url}{self.url_end}", "name": "upstream", "priority": 0}
        policy = {"policy": {"rules": self.rules}} if self.rules else {}
        self.add_repository("cached", self.format, type="Proxy", proxy={"routes": [route]}, **policy)

    def place(self, kind: str) -> str:
        return self.repository_url("cached")

    def client(self, image: str) -> Registry:
        # Requests carry a bearer token of the token service, as docker sends it.
        name = f"main/cached/{image}"
        url = f"{self.base_url}/api/auth/token?service=bench&scope=repository:{name}:pull"
        token = json.loads(get(url, {}).body)["token"]
        return Registry(self.base_url, name, {"Authorization": f"Bearer {token}"})


for _name, _kind, _format, _url_end in (
    ("npm", "npm", "npm", ""),
    ("huge", "npm-huge", "npm", ""),
    ("python", "python", "python", "/simple/"),
    ("maven", "maven", "maven", ""),
    ("maven-silent", "maven-silent", "maven", ""),
    ("image", "images", "docker", ""),
    ("line", "images-line", "docker", ""),
    ("gems", "gems", "ruby", ""),
):
    variant(f"pkgrepo-{_name}-proxy", PkgrepoProxy, direct=UPSTREAMS[_kind], format=_format, url_end=_url_end)


# The rules that are suggested, for a day on which all versions are new, without that which would hold them all.
RULES: Final = [
    {"name": "trust fell", "match": {"source": "cached", "trust": "fell"}, "action": "quarantine"},
    {
        "name": "differs",
        "match": {
            "age_days": 14,
            "source": "cached",
            "differs": ["install_script", "native_build", "executable", "git_dependency", "size"],
        },
        "action": "quarantine",
    },
]
variant("pkgrepo-npm-ruled-proxy", PkgrepoProxy, direct=UPSTREAMS["npm"], format="npm", rules=RULES)


class VerdaccioProxy(Proxy, Verdaccio):
    """Verdaccio with one uplink, otherwise as it is without."""

    name = "verdaccio-proxy"

    def uplinks(self) -> tuple[str, str]:
        return f"{{ upstream: {{ url: '{self.upstream.base_url}/' }} }}", ", proxy: upstream"

    def prepare(self) -> None:
        """Do nothing: reading needs no user."""


variant("verdaccio-huge-proxy", VerdaccioProxy, direct=UPSTREAMS["npm-huge"])


class DevpiProxy(Proxy, Devpi):
    """Devpi with an index that mirrors the upstream."""

    name = "devpi-proxy"
    direct = UPSTREAMS["python"]
    places = {"python": "/root/up"}
    offline = False

    def prepare(self) -> None:
        root = self.login("root", "")
        index = {"type": "mirror", "mirror_url": f"{self.upstream.base_url}/simple/", "volatile": False}
        send_json("PUT", f"{self.base_url}/root/up", index, root)


class Proxpi(Proxy):
    """
    Proxpi under gunicorn with one process and many threads, as its image runs it.

    It waits for every file that it downloads; by default it sends clients to the upstream after 0.9 seconds.
    """

    name = "proxpi"
    direct = UPSTREAMS["python"]
    pages = "/index"

    def command(self) -> Sequence[str]:
        self.version = importlib.metadata.version("proxpi")
        where = ["--bind", f"{LOOPBACK}:{self.port}"]
        return [venv_program("gunicorn"), *where, "--threads", "64", "--log-level", "error", "proxpi.server:app"]

    def environment(self) -> Mapping[str, str]:
        return {
            "PROXPI_INDEX_URL": f"{self.upstream.base_url}/simple/",
            "PROXPI_CACHE_DIR": str(self.folder / "cache"),
            "PROXPI_DOWNLOAD_TIMEOUT": "600",
            "PROXPI_LOGGING_LEVEL": "ERROR",
        }


class DistributionProxy(Proxy, Distribution):
    """Distribution as a pull-through cache."""

    name = "distribution-proxy"
    direct = UPSTREAMS["images"]

    def more(self) -> str:
        return f"proxy: {{remoteurl: '{self.upstream.base_url}'}}"


variant("distribution-line-proxy", DistributionProxy, direct=UPSTREAMS["images-line"])
