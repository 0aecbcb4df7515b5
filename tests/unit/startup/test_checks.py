"""What a start would find is found beforehand."""

from __future__ import annotations

import pytest
from twisted.internet import reactor

from pkgrepo.composition.core import Core
from pkgrepo.config import read_config
from pkgrepo.formats.python import format as python_format
from pkgrepo.proxy.schema import VirtualConfig
from pkgrepo.repositories.configuration import Configurations, HostedConfig
from pkgrepo.startup.checks import start_problems
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.people import users
from pkgrepo.storage.catalog.server import storages

HASH = "0" * 64
PUBLISHER = {"issuer": "github", "claims": {"repository": "acme/tool"}, "packages": ["acme-*"], "actions": ["write"]}
UNREADABLE = {"name": "old", "match": {"versions": ">=?"}, "keep": {"last": 1}}


def problems(folder, **overrides):
    values = {"data.dir": str(folder / "data"), **{name.replace("__", "."): each for name, each in overrides.items()}}
    config = read_config(overrides=values)
    return list(start_problems(Core(config, reactor), config))


def repository(**more):
    return {"bootstrap__repositories": [{"name": "py", "format": "python", **more}]}


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"server__listen": ["tpc:8081"]}, "server.listen: there is nothing to listen at for 'tpc:8081'"),
        ({"server__listen": ["tcp:0:interface=192.0.2.1"]}, "this machine has no address '192.0.2.1'"),
        ({"server__listen": [r"tcp6:0:interface=2001\:db8\:\:1"]}, "this machine has no address '2001:db8::1'"),
        (repository(format="pyhton"), "main/py: there is no format 'pyhton'; there are cargo, conda, docker, go, "),
        (repository(storage="mian"), "mian/py: there is no storage 'mian'"),
        (repository(config={"type": "Hosted", "policy": {"overwrite": 1}}), "bootstrap.repositories: main/py: "),
        ({"bootstrap__repositories": [{"name": "Images", "format": "docker"}]}, "main/Images: "),
        ({"bootstrap__tokens": [{"name": "ci", "user": "mary", "hash": HASH}]}, "ci: there is no user 'mary'"),
    ],
)
def test_each_is_told(tmp_path, overrides, expected):
    (problem,) = problems(tmp_path, **overrides)
    assert expected in problem
    assert list(tmp_path.iterdir()) == []


def test_members_of_declared_virtual_repositories_are_declared_before(tmp_path, monkeypatch):
    monkeypatch.setattr(python_format, "CONFIGURATIONS", Configurations("Python", HostedConfig | VirtualConfig))
    virtual = {"name": "all", "format": "python", "config": {"type": "Virtual", "members": ["main/PY"]}}
    py = {"name": "py", "format": "python"}
    assert problems(tmp_path, bootstrap__repositories=[py, virtual]) == []
    (problem,) = problems(tmp_path, bootstrap__repositories=[virtual, py])
    assert problem.startswith("bootstrap.repositories: main/all: there is no repository 'main/PY'")


@pytest.mark.parametrize(
    "overrides",
    [
        {"server__listen": ["systemd:domain=INET:index=0", "tcp:0:interface=127.0.0.1", "tcp:8081"]},
        repository(storage="Main"),
        {**repository(storage="fast"), "bootstrap__storages": [{"name": "fast"}]},
        {"bootstrap__tokens": [{"name": "ci", "user": "Admin", "hash": HASH}]},
    ],
)
def test_what_a_start_takes_is_no_problem(tmp_path, overrides):
    assert problems(tmp_path, **overrides) == []


def test_a_file_of_authorities_that_has_none_is_told(tmp_path):
    (tmp_path / "bad.pem").write_text("nothing of the kind")
    (problem,) = problems(tmp_path, proxy__ca_file=str(tmp_path / "bad.pem"), **repository())
    assert problem == f"proxy.ca_file: {tmp_path / 'bad.pem'} is no readable file of certificates in PEM"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"config": {"type": "Hosted", "retention": {"rules": [UNREADABLE]}}}, "main/py: "),
        ({"config": {"type": "Hosted", "publishers": [PUBLISHER]}}, "there is no issuer 'github' in the settings"),
    ],
)
def test_what_the_api_refuses_is_not_declared(tmp_path, more, expected):
    (problem,) = problems(tmp_path, **repository(**more))
    assert problem.startswith("bootstrap.repositories: main/py: ")
    assert expected in problem


def test_a_declared_publisher_is_not_anybody(tmp_path):
    issuers = {"auth__issuers": {"github": {"issuer": "https://token.actions.githubusercontent.com"}}}
    more = {"server__public_url": "https://packages.example", **issuers}
    declared = repository(config={"type": "Hosted", "publishers": [{**PUBLISHER, "claims": {"workflow": "release"}}]})
    (problem,) = problems(tmp_path, **declared, **more)
    assert "everybody has pipelines at https://token.actions.githubusercontent.com" in problem
    declared = repository(config={"type": "Hosted", "publishers": [PUBLISHER]})
    assert problems(tmp_path, **declared, **more) == []


def test_a_certificate_that_is_none_is_told(tmp_path):
    (tmp_path / "bad.pem").write_text("nothing of the kind")
    (problem,) = problems(tmp_path, tls__cert=str(tmp_path / "bad.pem"), tls__key=str(tmp_path / "bad.pem"))
    assert problem.startswith("tls.cert: ")


def test_a_file_is_no_data_folder_and_no_catalog(tmp_path):
    (tmp_path / "data").write_text("text")
    (problem,) = problems(tmp_path)
    assert problem.endswith("is no folder")
    (tmp_path / "data").unlink()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pkgrepo.db").write_text("no database at all" * 100)
    assert "cannot be read" in problems(tmp_path)[0]


async def test_what_the_catalog_has_counts(tmp_path):
    catalog = SqliteCatalog(tmp_path / "data" / "pkgrepo.db", reactor=reactor)
    await catalog.start()
    await catalog.write(storages.add_storage, name="made", kind="Local", settings={"path": "made"}, now_ms=1)
    await catalog.write(users.add_user, username="mary", password_hash="", now_ms=1)
    tokens = {"bootstrap__tokens": [{"name": name, "user": name, "hash": HASH} for name in ("mary", "admin")]}
    assert problems(tmp_path, **repository(storage="made"), **tokens) == [
        "bootstrap.tokens: admin: there is no user 'admin'"
    ]
    await catalog.stop()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"settings": {}}, "a storage of type S3 needs endpoint and bucket"),
        ({"settings": {"endpoint": "https://s3.example"}}, "a storage of type S3 needs endpoint and bucket"),
        ({"settings": {"endpoint": "https://s3.example", "buckt": "a"}}, "settings: "),
        ({"settings": {"endpoint": "https://s3.example", "bucket": "packages"}, "path": "/srv"}, "has no path"),
        ({"settings": {"access_key_id": "a", "secret_access_key": "b"}}, "the access key belongs in the environment"),
        ({"type": "Local", "settings": {"bucket": "packages"}}, "settings are those of a bucket"),
    ],
)
def test_a_declared_bucket_is_checked(tmp_path, declared, expected):
    (problem,) = problems(tmp_path, bootstrap__storages=[{"name": "main", "type": "S3", **declared}])
    assert problem.startswith("bootstrap.storages: main: ")
    assert expected in problem


def test_repositories_may_be_declared_in_a_declared_bucket(tmp_path):
    settings = {"endpoint": "https://s3.example", "bucket": "packages"}
    storage = {"name": "cloud", "type": "S3", "settings": settings}
    assert problems(tmp_path, bootstrap__storages=[storage], **repository(storage="cloud")) == []
