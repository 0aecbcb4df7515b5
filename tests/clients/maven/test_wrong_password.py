"""What Maven prints for wrong credentials; failed logins are limited, so they have a server of their own."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench
from tests.support.maven_clients import MAVENS

# Maven 4 sends the password three times, and prints no status, or that of the limit (403) if the others came before.
TOLD = {
    "maven-3.8": ("401", "too many failed logins"),
    "maven-3.9": ("401", "too many failed logins"),
    "maven-4": ("too many authentication attempts", "HTTP Status: 403"),
}


@pytest.mark.parametrize("maven", MAVENS)
def test_wrong_password_is_told(make_bench: MakeBench, maven: str) -> None:
    bench = make_bench(auth=(maven, "wrong"))
    shown = bench.deploy_file(maven, "com.example.wrong:app:1", bench.jar("x"), status=1)
    assert any(each in shown for each in TOLD[maven]), shown
