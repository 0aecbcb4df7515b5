"""This checkout: empty, with a repository, or with a filled catalog."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.clients.load import Post, Target, basic, post_all, send_json
from tests.bench.packages.filler import filler
from tests.bench.packages.trees import Node
from tests.support.conda_packages import make_conda
from tests.support.gems import EMPTY_DATA, make_gemspec, pack_gem

from .server import LOOPBACK, ROOT, Contestant, Unavailable, variant

FILL_LIMIT_S = 1800.0
PUSHERS = 8


class Pkgrepo(Contestant):
    """This checkout, started by ``bin/serve`` with one process and without an access log, as its peers run."""

    user = "admin"
    password = "a-bench-of-our-own"
    storage = "main"

    def command(self) -> Sequence[str]:
        serve = ROOT / "bin" / "serve"
        if not serve.exists():
            raise Unavailable("bin/serve is missing")
        self.version = _revision()
        return [str(serve)]

    def environment(self) -> Mapping[str, str]:
        return {
            "PKGREPO_ADMIN_USER": self.user,
            "PKGREPO_ADMIN_PASSWORD": self.password,
            "PKGREPO_DATA__DIR": str(self.data),
            "PKGREPO_SERVER__LISTEN": f'["tcp:{self.port}:interface={LOOPBACK}"]',
            "PKGREPO_SERVER__WORKERS": "1",
            "PKGREPO_LOG__ACCESS": "false",
            "PKGREPO_LOG__LEVEL": "warn",
        }

    @property
    def data(self) -> Path:
        """Where it keeps everything."""
        return self.folder / "data"

    @property
    def admin(self) -> Mapping[str, str]:
        """The header fields of its administrator."""
        return basic(self.user, self.password)

    def ask(self, path: str, value: object) -> Any:
        """The answer of the management API to a POST by the administrator. :raises LoadFailed: it was refused"""
        return send_json("POST", f"{self.base_url}/api/{path}", value, self.admin)

    def add_repository(self, name: str, format_name: str, visibility: str = "public", **config: object) -> None:
        """Make a repository, hosted unless ``config`` says otherwise."""
        values = {"name": name, "format": format_name, "visibility": visibility, "config": {"type": "Hosted", **config}}
        self.ask("repository", {"storage": self.storage, **values})

    def repository_url(self, name: str) -> str:
        """The address of a repository, with no slash at its end."""
        return f"{self.base_url}/repositories/{self.storage}/{name}"

    def make_token(self, repositories: str) -> str:
        """A token that may read from and write to repositories of this pattern ("storage/name")."""
        reach = [{"repository": repositories, "actions": ["read", "write"]}]
        token: str = self.ask("user/token", {"name": "bench", "repositories": reach})["token"]
        return token


class PkgrepoHosting(Pkgrepo):
    """One with a repository of a format, and a token that may write to it, as a build machine has one."""

    repository = ""
    format = ""
    visibility = "public"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.token = ""

    def prepare(self) -> None:
        if not self.token:
            self.add_repository(self.repository, self.format, self.visibility)
            self.token = self.make_token(f"{self.storage}/{self.repository}")

    def place(self, kind: str) -> str:
        return self.repository_url(self.repository)

    def target(self, kind: str) -> Target:
        return target(kind, self.place(kind), self.token)


class Filled(PkgrepoHosting):
    """One whose repository has ``releases`` releases of other packages from the start."""

    releases = 0
    first = 0  # the number of the first one

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._filled = False

    def start(self) -> None:
        """
        As any contestant; at its first start, fill its catalog.

        The releases go through the project's own publishing command, a few hundred to a transaction, with no files
        behind them: a hundred thousand uploads would take the better part of an hour.
        """
        super().start()
        if not self._filled:
            self._filled = True
            self.stop()
            self.fill(str(self.releases))
            super().start()

    def fill(self, *arguments: str) -> None:
        """Publish releases in the repository of the stopped server, see L{fill}."""
        self.run_module("fill", str(self.data), f"{self.storage}/{self.repository}", *arguments)

    def run_module(self, module: str, *arguments: str) -> None:
        """Run a module of the benchmarks in the project's environment. :raises Unavailable: it fails"""
        command = [str(ROOT / ".venv" / "bin" / "python"), "-m", f"tests.bench.{module}", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=FILL_LIMIT_S, check=False)
        if done.returncode:
            raise Unavailable(f"filling the catalog: {done.stderr.decode(errors='replace')[-300:]}")


class PkgrepoGems(PkgrepoHosting):
    """A public repository of gems."""

    name = "pkgrepo-gems"
    repository = "gems"
    format = "ruby"

    def push(self, posts: Sequence[Post], clients: int = PUSHERS) -> list[float]:
        """Push gems; the milliseconds that each took."""
        return post_all(self.target("gems"), posts, clients)

    def publish_tree(self, nodes: Sequence[Node]) -> None:
        """Push all versions of a tree."""
        self.push(
            [
                gem_post(node.name, version, needs=node.needs, pad=node.padding if version == node.newest else 0)
                for node in nodes
                for version in node.versions
            ]
        )


LITTLE_GEMS, MIDDLE_GEMS, BIG_GEMS = (
    variant(f"pkgrepo-gems-{count}", Filled, PkgrepoGems, releases=count).name for count in (1_000, 20_000, 200_000)
)  # versions, ten of each gem


class PkgrepoChannel(PkgrepoHosting):
    """A public conda channel, empty when it starts."""

    name = "pkgrepo-conda"
    repository = "channel"
    format = "conda"

    @property
    def folder_url(self) -> str:
        """The address of the folder with all packages."""
        return f"{self.place('conda')}/noarch"


class PkgrepoConda(Filled, PkgrepoChannel):
    """A public conda channel with 30,000 records, of 3,000 packages, in one folder."""

    name = "pkgrepo-conda-30000"
    releases = 30_000


SINGLES = {  # a public repository of each of these formats, by kind
    kind: variant(f"pkgrepo-{kind}", PkgrepoHosting, repository=kind, format=kind)
    for kind in ("cargo", "go", "helm", "raw")
}


def target(kind: str, repository_url: str, token: str) -> Target:
    """Where a repository takes packages of a kind, with a token as the clients of these packages send it."""
    bearer = {"Authorization": f"Bearer {token}"}
    end, headers = {
        "npm": ("", bearer),
        "python": ("/legacy/", basic("__token__", token)),
        "maven": ("", basic("bench", token)),
        "gems": ("/api/v1/gems", {"Authorization": token}),
        "conda": ("/api/v1/upload/any", bearer),
        "cargo": ("", {"Authorization": token}),
        **dict.fromkeys(("go", "helm", "raw"), ("", bearer)),
    }[kind]
    return Target(f"{repository_url}{end}", headers)


def gem_post(name: str, version: str = "1.0.0", *, needs: Sequence[str] = (), pad: int = 0) -> Post:
    """The push of a gem, which has ``pad`` incompressible bytes."""
    spec = make_gemspec(name, version, dependencies={each: [(">=", "1.0")] for each in needs})
    data = pack_gem(spec, data=EMPTY_DATA + b"".join(filler(pad)))
    return Post({"Content-Type": "application/octet-stream"}, [data], len(data))


def conda_post(name: str, version: str = "1.0") -> Post:
    """The upload of a small conda package, as rattler-build sends it to a prefix server."""
    data = make_conda(name, version)
    fields = f'form-data; name="file"\r\nX-File-Name: {name}-{version}-py_0.conda'
    parts = [f"--b\r\nContent-Disposition: {fields}\r\n\r\n".encode(), data, b"\r\n--b--\r\n"]
    return Post({"Content-Type": "multipart/form-data; boundary=b"}, parts, sum(map(len, parts)))


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.strip()
