"""Versions that are published one after the other, so that views of the past tell them apart."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from tests.support.conda_packages import make_conda
from tests.support.gems import make_gem
from tests.support.http_client import BOUNDARY, HttpClient, Reply, form_body
from tests.support.maven_files import directory, make_pom
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled
from tests.support.upload_forms import twine

KINDS = ("own", "fresh", "both")  # hosted, a proxy of it that always asks, and a virtual repository around that
OCTETS = "application/octet-stream"


def now_between() -> str:
    """
    A whole second that is past, with all that was published so far.

    What is published next is of a later second: some upstreams give no parts of it.
    """
    second = int(time.time()) + 1
    polled(lambda: time.time() >= second + 1.01)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"


def now_exactly() -> str:
    """The millisecond that is past now, for what is published here: times of the log are as exact."""
    now_ms = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now_ms:
        pass
    return f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{now_ms % 1000:03d}Z"


def publish(format: str, client: HttpClient, name: str, version: str, tag: str = "latest") -> None:
    """Publish a small version as a client of the format does."""
    replies: list[Reply] = []
    match format:
        case "npm":
            body = make_publish(name, version, tag=tag)
            replies.append(
                client.ask("PUT", f"/{name.replace('/', '%2f')}", body, {"Content-Type": "application/json"})
            )
        case "python":
            kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
            form = twine(name, version, *make_wheel(name, version))
            replies.append(client.ask("POST", "/", form_body(form), kind))
        case "ruby":
            replies.append(client.ask("POST", "/api/v1/gems", make_gem(name, version), {"Content-Type": OCTETS}))
        case "conda":
            path = f"/noarch/{name}-{version}-py_0.conda"
            replies.append(client.ask("PUT", path, make_conda(name, version), {"Content-Type": OCTETS}))
        case "maven":
            place = f"{directory('com.example', name, version)}/{name}-{version}"
            for ending, data in ((".pom", make_pom("com.example", name, version)), (".jar", b"PK" + version.encode())):
                replies.append(client.ask("PUT", f"{place}{ending}", data, {"Content-Type": OCTETS}))
    for each in replies:
        assert each.status in (200, 201), each.text


def add_repositories(api: HttpClient, url: str, format: str, **more: str) -> None:
    """Add ``<format>-fresh`` and ``<format>-both`` beside the hosted ``main/<format>-own`` of the server at ``url``."""
    ending = "/simple/" if format == "python" else "/"
    routes = [{"url": f"{url}/repositories/main/{format}-own{ending}", "name": "up"}]
    for name, config in (
        ("fresh", {"type": "Proxy", "proxy": {"routes": routes}, "cache_ttl": "0"}),
        ("both", {"type": "Virtual", "members": [f"main/{format}-fresh"]}),
    ):
        body = {"name": f"{format}-{name}", "storage": "main", "format": format, "visibility": "public", **more}
        made = api.post_json("/repository", {**body, "config": config})
        assert made.status == 201, made.text
