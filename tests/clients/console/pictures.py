"""
Makes the pictures of the book and of the README: ``python -m tests.clients.console.pictures [FOLDER]``.

What they show is true: a server with the starter set, packages that a team has published, and what npm and pip have
installed from the public registries, whose addresses are those of the configuration of npm and pip on this machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from attrs import frozen
from PIL import Image

from tests.clients.npm.test_public_registry import configured_registry
from tests.clients.python.test_public_index import configured_index
from tests.support.book_pages import DOCS
from tests.support.chromium import chromium
from tests.support.client_programs import client, client_environment, run_client
from tests.support.container_clients import ADMIN, ok, push_image
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.images import make_image, make_index
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_packages import make_wheel
from tests.support.server_process import running

WIDTH: Final = 1280  # pixels
OWN_PROCESS: Final = {"PYTHONHASHSEED": "0"}  # as users start it: without the formats of tests
CONFIG: Final = """
[proxy]
allow_private = ["0.0.0.0/0"]
[bootstrap]
starter = ["npm", "python", "docker", "ruby"]
[bootstrap.upstreams]
npm = "{npm}"
python = "{python}"
"""
TEAM: Final[Mapping[str, tuple[str, ...]]] = {
    "acme-ledger": ("3.1.0", "3.2.0"),
    "acme-logging": ("1.2", "1.3"),
    "billing-client": ("2.0.0", "2.1.0"),
    "settlement-rules": ("0.9", "1.0"),
}
SCOPED: Final[Mapping[str, tuple[str, ...]]] = {
    "@acme/ui": ("11.4.0", "12.0.0"),
    "@acme/eslint-config": ("2.0.0",),
    "@acme/payments-sdk": ("1.8.0", "1.9.0"),
}
README: Final = """# Billing client

Sends invoices, and asks for their state.

```python
from billing_client import Client

Client("https://billing.corp.example").send(invoice)
```

| method | what it does |
| --- | --- |
| `send` | sends an invoice, once |
| `state` | says whether it is paid |
"""


@frozen
class Shot:
    """A picture: the page, and how much of it is shown, in pixels."""

    path: str
    height: int = 800


HOSTED: Final = "/ui/repositories/main/"
SHOTS: Final[Mapping[str, Shot]] = {
    "home": Shot("/ui/?sort=-downloads", 900),
    "package": Shot("/ui/repositories/main/pypi-hosted/packages/billing-client"),
    "difference": Shot(f"{HOSTED}npm-hosted/packages/@acme%2Fui/difference?before=11.4.0&after=12.0.0", 860),
    "image": Shot("/ui/repositories/main/images-hosted/packages/checkout/versions/v4"),
    "administration": Shot("/ui/admin", 650),
    "stage": Shot("/ui/admin/stages/{stage}", 640),
    "quarantined": Shot("/ui/admin/policy", 800),
    "rights": Shot("/ui/admin/users/ada/rights", 560),
    "health": Shot("/ui/admin/health", 700),
    "past": Shot("/ui/repositories/main/npm/past?at={today}", 640),
}


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A server with what the pictures show; its address, and what their addresses name."""
    settings = CONFIG.format(npm=configured_registry(), python=configured_index())
    with running(folder, settings, OWN_PROCESS) as server:
        wire = HttpClient(server.url, ADMIN)
        publish(wire)
        fetch(server.url, folder / "clients")
        today = datetime.now(UTC).date().isoformat()
        yield server.url, {"stage": prepare(wire), "today": today}


def publish(wire: HttpClient) -> None:
    """What the team publishes."""
    for name, versions in TEAM.items():
        needs = [("Requires-Dist", "requests (>=2.31)"), ("Requires-Dist", "attrs")] if name == "billing-client" else []
        for version in versions:
            fields = [("Summary", f"{name} of the platform team"), ("License-Expression", "Apache-2.0"), *needs]
            fields += [
                ("Description-Content-Type", "text/markdown"),
                ("Description", README.replace("\n", "\n        ")),
            ]
            filename, data = make_wheel(name, version, fields=fields, pad=40_000)
            ok(wire.put(f"/repositories/main/pypi-hosted/{name}/{version}/{filename}", data))
    for name, versions in SCOPED.items():
        for at, version in enumerate(versions):
            more: dict[str, Any] = {"description": f"{name} of the front-end team", "license": "MIT"}
            more |= {"dependencies": {"react": "^18.0.0", **({"clsx": "^2.1.0"} if at else {})}}
            files = {"package/dist/index.js": b"export const size = 12;\n" * (40 + 30 * at)}
            files |= {"package/dist/theme.css": b":root { color: black }\n"} if at else {}
            tarball = make_tarball(name, version, manifest=make_manifest(name, version, **more), files=files)
            body = make_publish(name, version, tarball=tarball, **more)
            ok(
                wire.put(
                    f"/repositories/main/npm-hosted/{name.replace('/', '%2f')}", body, Content_Type="application/json"
                )
            )
    for version in ("1.4.0", "1.5.0"):
        ok(wire.ask("POST", "/repositories/main/gems-hosted/api/v1/gems", make_gem("kiosk", version)))
    labels = {"org.opencontainers.image.title": "checkout", "org.opencontainers.image.version": "4"}
    history = [{"created_by": "COPY service /srv"}, {"created_by": 'ENTRYPOINT ["/srv/checkout"]', "empty_layer": True}]
    settings = {"Labels": labels, "Entrypoint": ["/srv/checkout"], "User": "app"}
    one, two = (make_image("checkout", architecture=a, settings=settings, history=history) for a in ("amd64", "arm64"))
    for image, reference in ((one, ""), (two, ""), (make_index([one, two]), "v4")):
        push_image(wire, "main/images-hosted/checkout", image, reference or image.digest)


def fetch(url: str, folder: Path) -> None:
    """What clients of the team install, some of it twice."""
    npm = client("npm-11")
    for build in ("web", "kiosk"):
        place = folder / build
        place.mkdir(parents=True)
        environ = client_environment(folder / f"home-{build}")
        wanted = ["express@4", "@acme/ui", *(["commander@12", "@acme/payments-sdk"] if build == "kiosk" else ["clsx"])]
        run_client(
            [npm, "install", "--force", "--no-audit", "--registry", f"{url}/repositories/main/npm/", *wanted],
            environ=environ,
            folder=place,
        )
        command = [client("pip"), "download", "--dest", place / "wheels", "billing-client", "acme-logging", "flask"]
        index = ("--index-url", f"{url}/repositories/main/pypi/simple/")
        run_client([*command, *index], environ=environ, folder=place)


def prepare(wire: HttpClient) -> str:
    """People, rules, and what waits for a decision. Returns the id of a stage."""
    for name in ("ada", "grace"):
        ok(wire.post_json("/api/users", {"username": name, "password": "correct horse battery"}))
    ok(wire.post_json("/api/groups", {"name": "crew"}))
    ok(wire.post_json("/api/groups/crew/members", {"user": "ada"}))
    grant = {"repository": "main/pypi-hosted", "actions": ["read", "write"]}
    ok(wire.post_json("/api/groups/crew/permissions", {"repositories": [grant]}, "PUT"))
    grant = {"repository": "main/npm-hosted", "actions": ["read", "write", "admin"]}
    ok(wire.post_json("/api/users/ada/permissions", {"repositories": [grant]}, "PUT"))
    rules = [
        {"name": "inside", "match": {"contents": ["install_script"]}, "action": "quarantine"},
        {"name": "young", "match": {"age_days": 3, "source": "cached"}, "exempt": ["@acme/*"]},
    ]
    for name in ("npm-proxy", "pypi-proxy"):
        ok(wire.post_json(f"/api/repository/main%2F{name}/config/policy", {"rules": rules}, "PATCH"))
    for _ in range(100):  # what waits is noted a moment after it was asked for
        wire.get("/repositories/main/npm-proxy/core-js")
        if "core-js" in wire.get("/api/policy/quarantine").text:
            break
        time.sleep(0.1)
    stage = ok(wire.post_json("/api/repository/main%2Fpypi-hosted/stages", {"description": "the autumn release"})).json
    for name, version in (("acme-ledger", "3.3.0"), ("billing-client", "2.2.0")):
        filename, data = make_wheel(name, version, pad=40_000)
        ok(wire.put(f"/repositories/main/pypi-hosted+stage-{stage['id']}/{name}/{version}/{filename}", data))
    return str(stage["id"])


def main(folder: Path) -> None:
    """Write all pictures into a folder."""
    with (
        TemporaryDirectory() as place,
        served(Path(place)) as (url, named),
        chromium(url, Path(place, "profile")) as window,
    ):
        window.log_in(*ADMIN)
        window.look(dark=False, width=WIDTH)
        for name, shot in SHOTS.items():
            window.show(shot.path.format_map(named))
            window.picture(folder / f"{name}.png", shot.height)
            with Image.open(folder / f"{name}.png") as picture:  # 256 colours are enough, and take a third
                smaller = picture.convert("RGB").quantize(colors=256, dither=Image.Dither.NONE)
            smaller.save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "pictures")
