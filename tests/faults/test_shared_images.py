"""Images of upstreams whose clients are connected to two workers."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.support.configurations import proxy
from tests.support.images import digest_of
from tests.support.proxied import PRIVATE
from tests.support.server_process import running
from tests.support.timeouts import TIMEOUT_S
from tests.support.upstreams.container import ContainerUpstream
from tests.support.workers import connect_to_each

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    "path", ["manifests/1", f"blobs/{digest_of(b'gone')}", "tags/list"], ids=["tag", "blob", "list"]
)
def test_what_an_upstream_lacks_of_an_image_one_worker_asks_for(tmp_path: Path, path: str) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(ContainerUpstream())
        text = PRIVATE + proxy("docker", "images", upstream.url, library_prefix='"never"')
        server = stack.enter_context(running(tmp_path, text, {"PKGREPO_SERVER__WORKERS": "2"}))
        one, other = connect_to_each(server.url)
        ends_at, count = monotonic() + TIMEOUT_S, 0
        while count != 1:  # the other one may be asked before it hears of the answer
            assert monotonic() < ends_at, count
            image = f"gone{secrets.token_hex(4)}"
            before = upstream.count()
            assert one.ask("GET", f"/v2/main/images/{image}/{path}").status == 404
            sleep(0.05)
            assert other.ask("GET", f"/v2/main/images/{image}/{path}").status == 404
            count = upstream.count() - before
