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
from typing import ClassVar

from attrs import frozen

from tests.bench.clients.load import basic, get, send_json
from tests.bench.clients.registry import Registry
from tests.bench.upstream import SENT

from .container import Distribution
from .npm import Verdaccio
from .python import Devpi
from .server import LOOPBACK, ROOT, Contestant, Pkgrepo, venv_program

LATENCY_MS = 30


@frozen
class Sent:
    """What an upstream was asked for: requests, and bytes of bodies."""

    requests: int
    bytes: int


class Source(Contestant):
    """
    Something to install from.

    C{mib} is the size of the image in MiB, and five times that of the large wheel.
    """

    mib: ClassVar[int] = 1000

    @property
    def registry_url(self) -> str:
        """The root of an npm registry, without a slash at its end."""
        return self.base_url

    @property
    def maven_url(self) -> str:
        """The root of a Maven repository, without a slash at its end."""
        return self.base_url

    def page_url(self, project: str) -> str:
        """The URL of a project's simple page."""
        return f"{self.base_url}/simple/{project}/"

    def client(self, image: str) -> Registry:
        """The registry of an image."""
        return Registry(self.base_url, image)


class Direct(Source):
    """An upstream; C{kind} says of what, see L{tests.bench.upstream}."""

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


class DirectNpm(Direct):
    """An npm registry."""

    name = "direct-npm"
    kind = "npm"


class DirectHuge(Direct):
    """An npm registry that has one package of 95 MB."""

    name = "direct-huge"
    kind = "npm-huge"


class DirectPython(Direct):
    """A Python index."""

    name = "direct-python"
    kind = "python"


class DirectMaven(Direct):
    """A Maven repository that announces the SHA-1 of its files."""

    name = "direct-maven"
    kind = "maven"


class DirectSilentMaven(Direct):
    """One that announces nothing, and has files of checksums."""

    name = "direct-maven-silent"
    kind = "maven-silent"


class DirectImages(Direct):
    """A container registry."""

    name = "direct-images"
    kind = "images"


class DirectLine(Direct):
    """A container registry that sends blobs as fast as a line of 1 Gbit/s."""

    name = "direct-line"
    kind = "images-line"


class Proxy(Source):
    """A proxy, which is empty when it starts; C{direct} is the class of its upstream."""

    direct: type[Direct]

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
    """A public repository of type Proxy; C{url_end} is appended to the upstream's address."""

    format = ""
    url_end = ""

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_PROXY__ALLOW_PRIVATE": json.dumps([LOOPBACK])}

    def prepare(self) -> None:
        route = {"url": f"{self.upstream.base_url}{self.url_end}", "name": "upstream", "priority": 0}
        repository = {
            "name": "cached",
            "storage": "main",
            "format": self.format,
            "visibility": "public",
            "config": {"type": "Proxy", "proxy": {"routes": [route]}},
        }
        send_json("POST", f"{self.base_url}/api/repository", repository, basic(self.user, self.password))

    @property
    def repository_url(self) -> str:
        """The address of the repository, without a slash at its end."""
        return f"{self.base_url}/repositories/main/cached"


class PkgrepoNpmProxy(PkgrepoProxy):
    """Of npm packages."""

    name = "pkgrepo-npm-proxy"
    direct: type[Direct] = DirectNpm
    format = "npm"

    @property
    def registry_url(self) -> str:
        return self.repository_url


class PkgrepoHugeProxy(PkgrepoNpmProxy):
    """Of an upstream with a package of 95 MB."""

    name = "pkgrepo-huge-proxy"
    direct = DirectHuge


class PkgrepoPythonProxy(PkgrepoProxy):
    """Of Python packages."""

    name = "pkgrepo-python-proxy"
    direct = DirectPython
    format = "python"
    url_end = "/simple/"

    def page_url(self, project: str) -> str:
        return f"{self.repository_url}/simple/{project}/"


class PkgrepoMavenProxy(PkgrepoProxy):
    """Of Maven artifacts."""

    name = "pkgrepo-maven-proxy"
    direct: type[Direct] = DirectMaven
    format = "maven"

    @property
    def maven_url(self) -> str:
        return self.repository_url


class PkgrepoSilentMavenProxy(PkgrepoMavenProxy):
    """Of an upstream whose checksums have to be asked for."""

    name = "pkgrepo-maven-silent-proxy"
    direct = DirectSilentMaven


class PkgrepoImageProxy(PkgrepoProxy):
    """Of images; requests carry a bearer token of the token service, as docker sends it."""

    name = "pkgrepo-image-proxy"
    direct: type[Direct] = DirectImages
    format = "docker"

    def client(self, image: str) -> Registry:
        name = f"main/cached/{image}"
        url = f"{self.base_url}/api/auth/token?service=bench&scope=repository:{name}:pull"
        token = json.loads(get(url, {}).body)["token"]
        return Registry(self.base_url, name, {"Authorization": f"Bearer {token}"})


class PkgrepoLineProxy(PkgrepoImageProxy):
    """Of a registry behind a line."""

    name = "pkgrepo-line-proxy"
    direct = DirectLine


class VerdaccioProxy(Proxy, Verdaccio):
    """Verdaccio with one uplink, otherwise as it is without."""

    name = "verdaccio-proxy"
    direct: type[Direct] = DirectNpm

    def uplinks(self) -> tuple[str, str]:
        return f"{{ upstream: {{ url: '{self.upstream.base_url}/' }} }}", ", proxy: upstream"

    def prepare(self) -> None:
        """Do nothing: reading needs no user."""


class VerdaccioHugeProxy(VerdaccioProxy):
    """Of an upstream with a package of 95 MB."""

    name = "verdaccio-huge-proxy"
    direct = DirectHuge


class DevpiProxy(Proxy, Devpi):
    """Devpi with an index that mirrors the upstream."""

    name = "devpi-proxy"
    direct = DirectPython
    offline = False

    def prepare(self) -> None:
        root = self.login("root", "")
        index = {"type": "mirror", "mirror_url": f"{self.upstream.base_url}/simple/", "volatile": False}
        send_json("PUT", f"{self.base_url}/root/up", index, root)

    def page_url(self, project: str) -> str:
        return f"{self.base_url}/root/up/+simple/{project}/"


class Proxpi(Proxy):
    """
    Proxpi under gunicorn with one process and many threads, as its image runs it.

    It waits for every file that it downloads; by default it sends clients to the upstream after 0.9 seconds.
    """

    name = "proxpi"
    direct = DirectPython

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

    def page_url(self, project: str) -> str:
        return f"{self.base_url}/index/{project}/"


class DistributionProxy(Proxy, Distribution):
    """Distribution as a pull-through cache."""

    name = "distribution-proxy"
    direct: type[Direct] = DirectImages

    def more(self) -> str:
        return f"proxy: {{remoteurl: '{self.upstream.base_url}'}}"


class DistributionLineProxy(DistributionProxy):
    """Of a registry behind a line."""

    name = "distribution-line-proxy"
    direct = DirectLine
