"""The npm format."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping

from tests.support.npm_packages import make_publish, make_tarball

from .case import Case, Send


async def put(send: Send, name: str, version: str) -> None:
    body = make_publish(name, version, tag="next" if "-" in version else "latest")
    await send("PUT", f"/{name.replace('/', '%2f')}", body, kind="application/json")


def sent(name: str, version: str) -> tuple[str, bytes, Mapping[str, str]]:
    return f"{name}-{version}.tgz", make_tarball(name, version), {}


def lock(name: str, version: str, data: bytes) -> tuple[str, str]:
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
    packages = {f"node_modules/{name}": {"version": version, "integrity": integrity}}
    return "package-lock.json", json.dumps({"lockfileVersion": 3, "packages": packages})


NPM = Case(
    format="npm",
    put=put,
    more=lambda send: put(send, "demo", "2.0.0-rc.1"),
    document="/{name}",
    listed='-{version}.tgz"',
    file="/{name}/-/{name}-{version}.tgz",
    beside=("/%64emo/-/demo-1.1.0.tgz",),
    sent=sent,
    lock=lock,
)
