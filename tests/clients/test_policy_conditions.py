"""Each condition and action of rules, in each format: what a program of the format says, and what is explained."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.support.advisories import wait_for_advisories
from tests.support.client_programs import client, client_environment, run_client
from tests.support.conda_packages import make_conda
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, ContainerClients, host_of, push_image
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.maven_clients import MavenBench
from tests.support.maven_files import make_pom
from tests.support.npm_clients import NodeBench, Registry
from tests.support.npm_packages import make_publish
from tests.support.osv_records import affected, record, since, write_folder
from tests.support.proxied import PRIVATE
from tests.support.python_index import PythonBench
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.ruby_clients import NEWER, RubyBench
from tests.support.server_process import ServerProcess
from tests.support.upload_forms import twine

pytestmark = pytest.mark.clients

FORMATS = ("npm", "python", "maven", "ruby", "conda", "docker")
WHY = "steals keys"
ID = "GHSA-aaaa-bbbb-cccc"
PATHS = {
    "npm": "/demo/-/demo-1.1.0.tgz",
    "python": "/packages/demo/1.1.0/demo-1.1.0.tar.gz",
    "maven": "/com/example/demo/1.1.0/demo-1.1.0.jar",
    "ruby": "/gems/demo-1.1.0.gem",
    "conda": "/noarch/demo-1.1.0-py_0.conda",
}
ECOSYSTEMS = {"npm": "npm", "python": "PyPI", "maven": "Maven", "ruby": "RubyGems"}
IMAGE = make_image("two", settings={"Labels": {"org.example.stage": "dev"}})


def name_in(format: str) -> str:
    return "com.example:demo" if format == "maven" else "demo"


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> str:
    records = [
        record(f"{ID[:-4]}{kind}", affected(system, name_in(kind), *since("1.1.0", "1.2.0")), **SEVERE)
        for kind, system in ECOSYSTEMS.items()
    ]
    folder = write_folder(tmp_path_factory.mktemp("osv"), records)
    repositories = "".join(hosted(each, f"{each}-own") for each in FORMATS)
    return f'{repositories}{PRIVATE}[advisories]\nsource = "{folder}"\n'


SEVERE = {"database_specific": {"severity": "CRITICAL"}}


@pytest.fixture(scope="module")
def api(server: ServerProcess) -> HttpClient:
    """The API of a server with two versions of ``demo`` in each format, and a proxy of each repository."""
    found = HttpClient(f"{server.url}/api", ADMIN)
    own = {each: HttpClient(f"{server.url}/repositories/main/{each}-own", ADMIN) for each in FORMATS}
    for version in ("1.0.0", "1.1.0"):
        bad = version == "1.1.0"
        licence = "GPL-3.0-only" if bad else "MIT"
        scripts = {"scripts": {"install": "node-gyp rebuild"}} if bad else {}
        sent = [own["npm"].put("/demo", make_publish("demo", version, license=licence, **scripts))]
        make = make_sdist if bad else make_wheel
        form = twine("demo", version, *make("demo", version, fields=[("License", licence)]))
        sent.append(own["python"].post_form("/", form))
        extensions = "\n- ext/extconf.rb" if bad else " []"
        gem = make_gem("demo", version, extra=f"licenses:\n- {licence}\nextensions:{extensions}")
        sent.append(own["ruby"].post("/api/v1/gems", gem))
        stamp = {"timestamp": round(time.time() * 1000)}
        name = f"/noarch/demo-{version}-py_0.conda"
        sent.append(own["conda"].put(name, make_conda("demo", version, license=licence, **stamp)))
        pom = make_pom(
            "com.example", "demo", version, f"<licenses><license><name>{licence}</name></license></licenses>"
        )
        for ending, data in (("pom", pom), ("jar", b"PK" + version.encode())):
            sent.append(own["maven"].put(f"/com/example/demo/{version}/demo-{version}.{ending}", data))
        assert [each.status for each in sent if each.status not in (200, 201)] == [], [each.text for each in sent]
        image = IMAGE if bad else make_image("one")
        push_image(HttpClient(server.url, ADMIN), "main/docker-own/demo", image, version)
    for each in FORMATS:
        ending = {"python": "/simple/", "docker": ""}.get(each, "/")
        url = f"{server.url}/{'v2' if each == 'docker' else 'repositories'}/main/{each}-own{ending}"
        route = {"url": url, "name": "up"}
        config = {"type": "Proxy", "proxy": {"routes": [route]}, "cache_ttl": "1d"}
        made = found.post_json(
            "/repository",
            {"name": f"{each}-mirror", "storage": "main", "format": each, "visibility": "public", "config": config},
        )
        assert made.status == 201, made.text
    wait_for_advisories(found)
    return found


@frozen
class Fetcher:
    """Gets version 1.1.0 with a program; ``run`` is given the repository, and whether that is to succeed."""

    format: str
    program: str
    run: Callable[[ServerProcess, Path, str, bool], str]


def npm(server: ServerProcess, folder: Path, where: str, served: bool) -> str:
    bench = NodeBench(folder, Registry(server.url, f"main/{where}"), None)
    address = f"{bench.registry.url}demo/-/demo-1.1.0.tgz"
    return bench.install("npm-11", bench.project("app"), "--ignore-scripts", address, status=0 if served else 1)


def uv(server: ServerProcess, folder: Path, where: str, served: bool) -> str:
    address = f"demo @ {server.url}/repositories/main/{where}{PATHS['python']}"
    bench = PythonBench(folder)
    (folder / "in.txt").write_text(address)
    return bench.run(client("uv"), "pip", "compile", folder / "in.txt", status=0 if served else 2)


def maven(server: ServerProcess, folder: Path, where: str, served: bool) -> str:
    bench = MavenBench(folder, f"{server.url}/repositories/main/{where}", None)
    return bench.fetch("maven-3.9", "com.example:demo:1.1.0", status=0 if served else 1)


def gem(server: ServerProcess, folder: Path, where: str, served: bool) -> str:
    bench = RubyBench(folder, NEWER, f"{server.url}/repositories/main/{where}", None)
    command = ("fetch", "demo", "-v", "1.1.0", "--clear-sources", "-s", f"{bench.url}/")
    printed = bench.gem(*command, status=None)
    assert ("Downloaded demo-1.1.0" in printed) == served, printed
    return printed


def rattler(server: ServerProcess, folder: Path, where: str, served: bool) -> str:
    arguments = {"channel": f"{server.url}/repositories/main/{where}", "specs": ["demo==1.1.0"]}
    arguments |= {"prefix": str(folder / "env"), "cache": str(folder / "cache")}
    program = Path(__file__).parent / "conda" / "rattler_client.py"
    command = [client("rattler", "python"), program, json.dumps(arguments)]
    environ = client_environment(folder / "home")
    return run_client(command, environ=environ, folder=folder, status=0 if served else 1).stdout


def crane(server: ServerProcess, folder: Path, where: str, served: bool) -> str:
    here = ContainerClients(folder, host_of(server))
    name = f"{here.host}/main/{where}/demo:1.1.0"
    return here.run("crane", "pull", name, folder / "image.tar", status=0 if served else 1)


FETCHERS = [
    Fetcher("npm", "npm", npm),
    Fetcher("python", "uv", uv),
    Fetcher("maven", "mvn", maven),
    Fetcher("ruby", "gem", gem),
    Fetcher("conda", "rattler", rattler),
    Fetcher("docker", "crane", crane),
]
QUICK = ("uv", "crane")  # with which all is tried; what differs between formats is tried with each program
SOON = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
NO_DATA = {
    "licences": ("docker",),
    "advisories": ("docker", "conda"),
    "install_scripts": ("maven", "conda", "docker"),
    "contents": ("maven", "docker"),
}
RULES: dict[str, tuple[str, Mapping[str, Any]]] = {  # the repository, and the rule
    "packages": ("own", {"match": {"packages": ["*d?mo"]}}),
    "versions": ("own", {"match": {"versions": ">=1.1,<2"}}),
    "digest": ("own", {"match": {"digests": []}}),
    "licences": ("own", {"match": {"licences": ["GPL-*"]}}),
    "severity": ("own", {"match": {"advisories": "high"}}),
    "advisory": ("own", {"match": {"advisories": ID}}),
    "age": ("own", {"match": {"age_days": 7}}),
    "age-cached": ("mirror", {"match": {"age_days": 7, "source": "cached"}}),
    "hosted": ("own", {"match": {"source": "hosted"}}),
    "cached": ("mirror", {"match": {"source": "cached"}}),
    "route": ("mirror", {"match": {"source": "up"}}),
    "scripts": ("own", {"match": {"install_scripts": True}}),
    "contents": ("mirror", {"match": {"contents": ["install_script"]}}),
    "quarantine": ("own", {"match": {"versions": "1.1.0"}, "action": "quarantine"}),
    "until": ("own", {"match": {"versions": "1.1.0"}, "until": SOON}),
    "ended": ("own", {"match": {"versions": "1.1.0"}, "until": "2026-01-01T00:00:00Z"}),
    "labels": ("own", {"match": {"labels": {"org.example.stage": "d*"}}}),
    "user": ("mirror", {"match": {"contents": ["root_user"]}}),
    "warn": ("own", {"match": {"versions": "1.1.0"}, "action": "warn"}),
    "exempt": ("own", {"match": {"packages": ["*"]}, "exempt": ["*demo@1.1.0"]}),
}
SERVED = ("ended", "warn", "exempt")
DIFFER = ("versions", "digest", "licences", "severity", "age-cached", "route", "scripts", "contents")  # between formats
SILENT = {"rattler": DIFFER, "gem": ("versions", "route")}  # kinds of which they only find no such version
CASES = [
    pytest.param(each, kind, id=f"{each.program}-{kind}")
    for each in FETCHERS
    for kind in RULES
    if (each.program in QUICK or kind in DIFFER)
    and (kind not in ("labels", "user") or each.program == "crane")
    and (kind, each.program) != ("contents", "rattler")  # whose package runs nothing
]


def rule_for(api: HttpClient, format: str, kind: str) -> dict[str, Any]:
    rule = dict(RULES[kind][1])
    match = dict(rule["match"])
    if kind == "digest" and format == "docker":
        match["digests"] = [IMAGE.digest]
    elif kind == "digest":
        own = HttpClient(api.url.replace("/api", f"/repositories/main/{format}-own"), ADMIN)
        match["digests"] = [f"sha256:{hashlib.sha256(own.get(PATHS[format]).body).hexdigest()}"]
    elif kind == "advisory":
        match["advisories"] = f"{ID[:-4]}{format}"
    if kind != "user" and any(key in match and format in formats for key, formats in NO_DATA.items()):
        rule["missing"] = "block"
    return {"name": "no thieves", "reason": WHY, **rule, "match": match}


@pytest.mark.parametrize(("fetcher", "kind"), CASES)
def test_a_rule_holds_for_a_program(
    server: ServerProcess, api: HttpClient, tmp_path: Path, fetcher: Fetcher, kind: str
) -> None:
    where = f"{fetcher.format}-{RULES[kind][0]}"
    rule = rule_for(api, fetcher.format, kind)
    path = f"/repository/main%2F{where}/config/policy"
    set_ = api.post_json(path, {"rules": [rule]}, "PATCH")
    if "missing" in rule and set_.status == 422:  # the format has no such thing
        assert "can never" in set_.text
        return
    assert set_.status == 200, set_.text
    try:
        served = kind in SERVED
        printed = " ".join(fetcher.run(server, tmp_path, where, served).split())
        about = f"version=1.1.0&package={name_in(fetcher.format)}"
        if (kind, fetcher.format) == ("digest", "maven"):  # the other file of the version is served
            about = f"file={PATHS['maven'].lstrip('/')}&package={name_in('maven')}"
        explained = api.get(f"/explain?repository=main/{where}&{about}").json
        assert ("no thieves" in explained["sentence"]) != served, explained["sentence"]
        assert ("not known" in explained["sentence"]) == ("missing" in rule), explained["sentence"]
        assert (WHY in printed) != (served or kind in SILENT.get(fetcher.program, ())), printed
    finally:
        assert api.post_json(path, {"rules": []}, "PATCH").status == 200
