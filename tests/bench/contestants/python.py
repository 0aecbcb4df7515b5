"""Python package servers: how each is filled, and the URLs of its pages and uploads."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

from attrs import evolve

from tests.bench.clients.load import HTML, LoadFailed, Post, Target, get, post_all, send_json
from tests.bench.packages.wheels import Wheel

from .pkgrepo import Filled, PkgrepoHosting
from .server import Contestant, Unavailable, variant, venv_program

BOUNDARY = "bench-3b2f7c1d9e"
UPLOADERS = 8
SMALL = 1 << 20  # bytes; smaller requests are sent in one piece
ANCHOR = re.compile(r'<a\s[^>]*?href="([^"]+)"[^>]*>\s*([^<]+?)\s*</a>')


class PythonIndex(Contestant):
    """A server of Python packages."""

    def publish(self, wheels: Sequence[Wheel]) -> None:
        """Make packages available through uploads, by eight clients."""
        post_all(self.target("python"), [form_post(wheel) for wheel in wheels], UPLOADERS)

    def file_url(self, wheel: Wheel) -> str:
        """The address of a file, as the simple page gives it. :raises LoadFailed: the page does not name it"""
        page = self.page_url(wheel.project)
        for href, text in ANCHOR.findall(get(page, {**HTML, "Accept-Encoding": "identity"}).body.decode()):
            if text == wheel.filename:
                return urljoin(page, unescape(href)).partition("#")[0]
        raise LoadFailed(f"{page} does not name {wheel.filename}")


class PkgrepoPython(PkgrepoHosting, PythonIndex):
    """A public repository of Python packages; uploads carry a token, as from a build machine."""

    name = "pkgrepo"
    repository = "py"
    format = "python"

    def raw_target(self, project: str, version: str, filename: str) -> Target:
        """Where a file goes as the bare body of a PUT."""
        return evolve(self.target("python"), url=f"{self.place('python')}/{project}/{version}/{filename}")


BIG, LITTLE = (variant(f"pkgrepo-{count}", Filled, PkgrepoPython, releases=count).name for count in (100_000, 100))


class PypiServer(PythonIndex):
    """
    Pypiserver as its documentation recommends for speed: digests and listings cached, the waitress server.

    It takes uploads from everybody; other ways to run it were slower or let clients wait until they gave up.
    """

    name = "pypiserver"

    def command(self) -> Sequence[str]:
        program = venv_program("pypi-server")
        self.version = importlib.metadata.version("pypiserver")
        self._packages.mkdir(exist_ok=True)
        where = ["-p", str(self.port), "-i", "127.0.0.1", "-P", ".", "-a", "."]
        how = ["--disable-fallback", "--backend", "cached-dir", "--server", "auto", "--log-stream", "none"]
        return [program, "run", *where, *how, str(self._packages)]

    def publish(self, wheels: Sequence[Wheel]) -> None:
        for wheel in wheels:
            wheel.ensure(self._packages)

    def target(self, kind: str) -> Target:
        return Target(f"{self.base_url}/")

    @property
    def _packages(self) -> Path:
        return self.folder / "packages"


class Devpi(PythonIndex):
    """
    Devpi-server with an index that has no bases, offline, its log silenced and core metadata served.

    Uploads carry the token of a login, as its own client sends it: a password would be hashed anew for each of them,
    which takes ten times as long as everything else.
    """

    name = "devpi"
    user = "bench"
    password = "a-bench-of-our-own"
    places = {"python": f"/{user}/dev"}
    pages = "/+simple"
    offline = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._credentials: Mapping[str, str] = {}

    def command(self) -> Sequence[str]:
        program, init = venv_program("devpi-server"), venv_program("devpi-init")
        self.version = importlib.metadata.version("devpi-server")
        state = self.folder / "state"
        if not state.exists():
            make = [init, "--no-root-pypi", "--serverdir", str(state)]
            made = subprocess.run(make, capture_output=True, timeout=60, check=False)
            if made.returncode:
                raise Unavailable(f"devpi-init: {made.stderr.decode(errors='replace')[-300:]}")
        log = self.folder / "log.json"
        log.write_text(json.dumps(_QUIET))
        where = ["--serverdir", str(state), "--host", "127.0.0.1", "--port", str(self.port)]
        how = ["--enable-core-metadata", "--logger-cfg", str(log), *(["--offline-mode"] if self.offline else [])]
        return [program, *where, *how]

    def prepare(self) -> None:
        root = self.login("root", "")
        send_json("PUT", f"{self.base_url}/{self.user}", {"password": self.password}, root)
        index = {"type": "stage", "bases": [], "volatile": False}
        send_json("PUT", f"{self.base_url}/{self.user}/dev", index, root)
        self._credentials = self.login(self.user, self.password)

    def login(self, user: str, password: str) -> Mapping[str, str]:
        answer = send_json("POST", f"{self.base_url}/+login", {"user": user, "password": password}, {})
        token = answer["result"]["password"]
        return {"X-Devpi-Auth": base64.b64encode(f"{user}:{token}".encode()).decode()}

    def target(self, kind: str) -> Target:
        return Target(f"{self.place(kind)}/", self._credentials)


def form_fields(wheel: Wheel) -> list[tuple[str, str]]:
    """The text fields of an upload, as twine sends them."""
    return [
        ("name", wheel.project),
        ("version", wheel.version),
        ("filetype", "bdist_wheel"),
        ("pyversion", "py3"),
        ("metadata_version", "2.1"),
        ("summary", "A package made to be weighed"),
        ("requires_python", ">=3.8"),
        ("requires_dist", "attrs>=20"),
        ("sha256_digest", wheel.sha256),
        (":action", "file_upload"),
        ("protocol_version", "1"),
    ]


def form_post(wheel: Wheel) -> Post:
    """The upload of a wheel, ready to be sent; its parts are in memory as far as the wheel's are."""
    fields = "".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in form_fields(wheel)
    )
    head = (
        f'{fields}--{BOUNDARY}\r\nContent-Disposition: form-data; name="content"; filename="{wheel.filename}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()
    parts = [head, *wheel.chunks(), tail]
    size = len(head) + wheel.size + len(tail)
    if size <= SMALL:
        parts = [b"".join(parts)]
    return Post({"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}, parts, size)


_QUIET = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler", "level": "ERROR"}},
    "root": {"level": "ERROR", "handlers": ["console"]},
}
