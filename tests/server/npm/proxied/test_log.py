"""What the log says about an install through a proxy."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.server


def test_log_has_only_the_requests_of_an_install(format_server, mirror, upstream):
    """Neither each connection nor each file is an event for an operator, beside the access log."""
    upstream.add("loud")
    path = upstream.tarball_path("loud", "1.0.0")
    assert mirror.get("/loud").status == mirror.get(path).status == 200
    answered = format_server.lines(f"GET {mirror.parts.path}{path} ", 1)
    others = [line for line in format_server.output.splitlines() if "loud" in line and "GET" not in line]
    assert (len(answered), others, "factory" in format_server.output) == (1, [], False)
