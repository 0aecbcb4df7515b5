"""Which raw paths are addresses of deployments."""

import pytest

from pkgrepo.formats.maven.deploy.addresses import Address, find_address

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("deploy", Address("begin")),
        ("deploy/", Address("begin")),
        (f"deploy/{UID}", Address("status", UID)),
        (f"deploy/{UID}/", Address("status", UID)),
        (f"deploy/{UID}/publish", Address("publish", UID)),
        (f"deploy/{UID}/files/a/b", Address("staged", UID, b"a/b")),
        (f"deploy/{UID}/files/", Address("staged", UID)),
        (f"deploy/{UID}/app-1.0.jar", Address("file", UID, b"app-1.0.jar")),
        (f"deploy/{UID}/a%2Fb", Address("file", UID, b"a%2Fb")),
        ("api/v1/publisher/upload", Address("portal upload")),
        ("api/v1/publisher/status", Address("portal status")),
        (f"api/v1/publisher/deployment/{UID}", Address("portal deployment", UID)),
    ],
)
def test_addresses_are_found(raw, expected):
    assert find_address(raw.encode()) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "deploys",
        "deploy/x",
        f"deploy/{UID.upper()}",
        f"deploy/{UID}0",
        f"deploy//{UID}",
        f"a/deploy/{UID}",
        "deploy/app/1.0/app-1.0.jar",
        "api/v1/publisher",
        "api/v1/publisher/other",
        "api/v1/publisher/deployment/x",
        "api/v1/publisher/upload/",
    ],
)
def test_other_paths_are_ordinary(raw):
    assert find_address(raw.encode()) is None
