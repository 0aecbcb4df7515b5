"""What Maven prints for wrong credentials; failed logins are limited, so they have a server of their own."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench
from tests.support.maven_clients import MAVENS

# Maven 4 asks the same question three times, and prints no status.
TOLD = {"maven-3.8": "401", "maven-3.9": "401", "maven-4": "too many authentication attempts"}


@pytest.mark.parametrize("maven", MAVENS)
def test_wrong_password_is_told(make_bench: MakeBench, maven: str) -> None:
    bench = make_bench(auth=(maven, "wrong"))
    assert TOLD[maven] in bench.deploy_file(maven, "com.example.wrong:app:1", bench.jar("x"), status=1)
