"""The Python format."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.http_client import BOUNDARY, form_body
from tests.support.python_packages import make_wheel
from tests.support.upload_forms import twine

from .case import Case, Send, sha256


async def put(send: Send, name: str, version: str) -> None:
    form = twine(name, version, *make_wheel(name, version))
    await send("POST", "/", form_body(form), kind=f"multipart/form-data; boundary={BOUNDARY}")


def sent(name: str, version: str) -> tuple[str, bytes, Mapping[str, str]]:
    return *make_wheel(name, version), {}


PYTHON = Case(
    format="python",
    versions=("1.0", "1.1"),
    put=put,
    document="/simple/{name}/",
    listed="{name}-{version}-",
    file="/{name}/{version}/{name}-{version}-py3-none-any.whl",
    beside=(
        "/Demo/1.1/demo-1.1-py3-none-any.whl",
        "/packages/demo/1.1/demo-1.1-py3-none-any.whl",
        "/demo/1.1/demo-1.1-py3-none-any.whl.metadata",
    ),
    upstream="/simple/",
    sent=sent,
    lock=lambda name, version, data: ("requirements.txt", f"{name}=={version} --hash=sha256:{sha256(data)}\n"),
)
