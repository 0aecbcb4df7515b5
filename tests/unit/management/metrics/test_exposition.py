"""The answer of /metrics."""

from __future__ import annotations

import builtins
import json
import os
import re
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import pytest_twisted
import yaml
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from pkgrepo import assembly
from pkgrepo.errors import StorageFailed
from pkgrepo.repositories.format import load_formats
from pkgrepo.repositories.upkeep.twins import TwinPlan, TwinState, put_state
from pkgrepo.startup.host_checks import CACHES
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.catalog.descriptions import CURSOR
from pkgrepo.storage.catalog.packages.events import last_seq
from pkgrepo.storage.catalog.server import layout_pending, settings
from pkgrepo.storage.catalog.server.layout_pending import Entry
from pkgrepo.storage.catalog.server.policy import add_counts
from pkgrepo.storage.catalog.server.replicas import ensure_replica, note_state
from tests.support.certificates import write_certificate
from tests.support.inprocess_server import until
from tests.support.memory_server import Stack


async def read_metrics(stack: Stack, who: str | None = "admin") -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    reply = await stack.call("GET", "/metrics", who=who)
    assert reply.status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


async def test_events_that_searches_do_not_know_are_counted(stack: Stack) -> None:
    await stack.add_repository()
    core = stack.assembly.core
    await core.descriptions.current()
    assert (await read_metrics(stack))["pkgrepo_search_backlog", ()] == 0
    await core.catalog.write(settings.put, CURSOR, "0")
    found = await read_metrics(stack)
    count = await core.catalog.look(last_seq)
    assert found["pkgrepo_search_backlog", ()] == count > 0
    assert (await stack.call("GET", "/readyz")).json["checks"]["searches"] == "ok"  # it was a moment ago
    long_ago = "UPDATE event SET at = at - 60000"
    await core.catalog.write(lambda tx: tx.execute(long_ago))
    reply = await stack.call("GET", "/readyz")
    assert (reply.status, reply.json["status"]) == (200, "ok")
    told = reply.json["checks"]["searches"]
    assert re.fullmatch(rf"{count} changes are not found yet, the first of which is \d+ s old", told), told
    await core.descriptions.current()
    assert (await stack.call("GET", "/readyz")).json["checks"]["searches"] == "ok"


async def test_failures_of_the_readable_layout_are_shown_and_leave_the_server_ready(stack: Stack) -> None:
    repository = await stack.add_repository()
    core = stack.assembly.core
    await until(lambda: core.follower._following is None)
    found = await read_metrics(stack)
    assert found["pkgrepo_layout_backlog", ()] == 0
    assert found["pkgrepo_layout_failed", (("storage", "main"),)] == 0
    known = core.registry.find_uid(repository["id"])
    assert known is not None
    entries = {Entry(known.id, name, "1", "1.0"): "No space left on device" for name in ("one", "two")}
    await core.catalog.write(layout_pending.record_attempts, (), entries)
    await core.catalog.write(layout_pending.add_repositories, [known.id])
    found = await read_metrics(stack)
    assert found["pkgrepo_layout_backlog", ()] == 1
    assert found["pkgrepo_layout_failed", (("storage", "main"),)] == 2
    reply = await stack.call("GET", "/readyz")
    assert (reply.status, reply.json["status"]) == (200, "ok")
    told = "2 entries could not be shown, and are tried again: No space left on device"
    assert reply.json["checks"]["readable layout"] == told


async def test_metrics_are_for_system_managers_and_tokens_with_the_scope(stack: Stack) -> None:
    await stack.add_user("ada")
    assert (await stack.call("GET", "/metrics", who=None)).status == 401
    assert (await stack.call("GET", "/metrics", who="ada")).status == 403
    token = await stack.token(scopes=["metrics"])
    assert (await stack.call("GET", "/metrics", who=token)).status == 200


async def test_labels_contain_nothing_that_a_client_invented(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "very-special-name", "1.0")
    await stack.call("GET", "/repositories/main/py/simple/very-special-name/", who=None)
    await stack.call("GET", "/made-up-by-a-client", who=None)
    await stack.call("GET", "/api/info", headers={"Authorization": "Basic YWRtaW46d3Jvbmc="})
    found = await read_metrics(stack)
    labels = {"area": "repositories", "code": "200", "format": "python", "method": "GET"}
    assert found["pkgrepo_http_requests_total", tuple(labels.items())] == 1
    assert found["pkgrepo_http_requests_total", tuple((labels | {"code": "201", "method": "PUT"}).items())] == 1
    other = {"area": "other", "code": "404", "format": "", "method": "GET"}
    assert found["pkgrepo_http_requests_total", tuple(other.items())] == 1
    assert found["pkgrepo_received_bytes_total", (("area", "repositories"), ("format", "python"))] > 500
    assert found["pkgrepo_sent_bytes_total", (("area", "repositories"), ("format", "python"))] > 100
    assert found["pkgrepo_login_failures_total", ()] == 1
    assert found["pkgrepo_repository_packages", (("repo", "main/py"),)] == 1
    assert found["pkgrepo_repository_bytes", (("repo", "main/py"),)] > 500
    assert found["pkgrepo_disk_free_bytes", (("storage", "main"),)] > 0
    assert found["pkgrepo_http_request_seconds_count", tuple(labels.items())] == 1
    below = tuple(sorted((labels | {"le": "+Inf"}).items()))
    assert found["pkgrepo_http_request_seconds_bucket", below] == 1
    assert "special" not in str(found)
    assert "made-up" not in str(found)


async def test_reads_from_the_response_cache_are_counted_separately(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    for _ in range(3):
        assert (await stack.call("GET", "/repositories/main/py/simple/demo/", who=None)).status == 200
    found = await read_metrics(stack)
    counts = [found["pkgrepo_cache_requests_total", (("format", "python"), ("result", it))] for it in ("hit", "miss")]
    assert counts == [2, 1]
    assert found["pkgrepo_cache_lookups_total", (("cache", "answers"), ("result", "hit"))] == 2
    assert found["pkgrepo_cache_entries", (("cache", "answers"),)] == 1
    assert found["pkgrepo_cache_bytes", (("cache", "answers"),)] > 100


@pytest_twisted.async_yield_fixture
async def small(make_stack: Any) -> Any:
    """A server whose caches may take 8 MiB together."""
    yield await make_stack(server__cache_memory=8 * 1024 * 1024)


async def load_all(stack: Stack) -> None:
    """Have the server load every format, and wait until their caches count."""
    core = stack.assembly.core
    await load_formats(core.formats.values(), core.pools.cpu)
    await until(lambda: "gems" in stack.assembly._caches)


async def test_caches_take_what_is_of_use_to_them_where_there_is_much_memory(
    make_stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "usable_memory", lambda: 2**40)
    stack = await make_stack()
    await load_all(stack)
    found = await read_metrics(stack)
    limits = {labels: value for (name, labels), value in found.items() if name == "pkgrepo_cache_limit_bytes"}
    assert sum(value for labels, value in limits.items() if "toys" not in str(labels)) == CACHES


async def test_all_caches_together_take_the_memory_that_is_set(small: Stack) -> None:
    await load_all(small)
    found = await read_metrics(small)
    limits = {labels[0][1]: value for (name, labels), value in found.items() if name == "pkgrepo_cache_limit_bytes"}
    assert {"answers", "answers of views", "repeats", "packuments", "pages", "gems", "maven metadata"} <= limits.keys()
    assert 0.99 * 8 * 1024 * 1024 < sum(limits.values()) <= 8 * 1024 * 1024


@pytest_twisted.async_yield_fixture
async def encrypted(make_stack: Any, tmp_path: Path) -> Any:
    """A server with a certificate and a copy of its audit log, and something published."""
    certificate, key = write_certificate(tmp_path)
    stack: Stack = await make_stack(
        tls__cert=str(certificate),
        tls__key=str(key),
        tls__reload="never",
        log__audit_file=str(tmp_path / "audit.jsonl"),
    )
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    assert (await stack.call("GET", "/repositories/main/py/simple/demo/", who=None)).status == 200
    yield stack


async def test_gauges_show_the_state_of_the_server(encrypted: Stack, tmp_path: Path) -> None:
    found = await read_metrics(encrypted)
    certificate = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    assert found["pkgrepo_certificate_expiry_timestamp_seconds", ()] == certificate.not_valid_after_utc.timestamp()
    database = encrypted.assembly.core.config.database_path
    assert found["pkgrepo_file_bytes", (("file", "database"),)] == database.stat().st_size
    assert found["pkgrepo_file_bytes", (("file", "wal"),)] > 0
    assert found["pkgrepo_file_bytes", (("file", "audit"),)] == (tmp_path / "audit.jsonl").stat().st_size
    assert found["pkgrepo_database_free_bytes", ()] > 0
    main = (("storage", "main"),)
    assert found["pkgrepo_disk_bytes", main] > found["pkgrepo_disk_free_bytes", main] > 0
    assert found["pkgrepo_storage_active", main] == 1
    assert (found["pkgrepo_http_requests_in_flight", ()], found["pkgrepo_connections", ()]) == (1, 1)


async def test_a_storage_that_does_not_answer_has_no_samples(stack: Stack, monkeypatch: Any) -> None:
    def fail(_store: Any) -> Any:
        raise StorageFailed("main")

    monkeypatch.setattr(FilesystemBlobStore, "capacity", fail)
    found = await read_metrics(stack)
    assert ("pkgrepo_disk_free_bytes", (("storage", "main"),)) not in found
    assert found["pkgrepo_storage_active", (("storage", "main"),)] == 1


async def test_file_systems_are_not_read_in_the_reactor_thread(stack: Stack, monkeypatch: Any) -> None:
    asking: list[int] = []

    def note(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def noting(*args: Any, **kwargs: Any) -> Any:
            asking.append(threading.get_ident())
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, noting)

    await read_metrics(stack)  # whatever is read once only has been read
    for owner, name in ((os, "stat"), (os, "statvfs"), (os, "listdir"), (builtins, "open")):
        note(owner, name)
    await read_metrics(stack)
    assert asking
    assert threading.get_ident() not in asking


async def test_every_metric_is_documented_and_dashboard_and_alerts_use_no_others(encrypted: Stack) -> None:
    routes = ["http://127.0.0.1:1/repositories/main/b"]  # where no upstream may be
    proxy = {"type": "Proxy", "proxy": {"routes": routes}, "replicate": {}}
    await encrypted.add_repository("mirror", format="npm", config=proxy)
    await encrypted.call("GET", "/repositories/main/mirror/demo")
    await encrypted.assembly._proxies.counters.flush()
    mirror = encrypted.assembly.core.registry.find_path("main/mirror")
    assert mirror is not None
    await encrypted.assembly.core.catalog.write(ensure_replica, mirror.id, "http://127.0.0.1:1 main/b")
    await encrypted.assembly.core.catalog.write(note_state, mirror.id, "", 1, current=True)
    twins = encrypted.assembly._twins
    twins.plans["web"] = TwinPlan(name="web", repository="main/py", target="/srv/web", every_s=60.0)
    await encrypted.assembly.core.catalog.write(put_state, "web", TwinState(written_ms=1, files=2))
    await encrypted.assembly.core.catalog.write(add_counts, {("main/mirror", "young", mirror.id, 1): 1})
    await read_metrics(encrypted)
    reply = await encrypted.call("GET", "/metrics")
    told = {}
    for family in text_string_to_metric_families(reply.body.decode()):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        told[family.name + ("_total" if family.type == "counter" else "")] = (family.type, labels)
    text = resources.files("pkgrepo").joinpath("docs", "metrics.md").read_text()
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \| ([\w, ]*)\| .+ \|$", text)
    explained = {name: (kind, {word.strip() for word in labels.split(",")} - {""}) for name, kind, labels in rows}
    assert explained == told

    for title, expression, texts in [*dashboard_queries(), *alert_queries()]:
        named = set(re.findall(r"\b(?:pkgrepo|process|python)_\w+", expression))
        known = {name if name in told else re.sub(r"_(bucket|sum|count)$", "", name) for name in named}
        assert named or title == "PkgrepoDown", title
        assert known <= told.keys(), title
        used = re.findall(r"(\w+)\s*(?:=~|!=|=)\s*\"", expression) + re.findall(r"{{(\w+)}}|\$labels\.(\w+)", texts)
        used = [word for each in used for word in ([each] if isinstance(each, str) else each) if word]
        groups = re.findall(r"(?:by|on|group_left) \(([^)]*)\)", expression)
        used += [word.strip() for group in groups for word in group.split(",")]
        assert set(used) <= {"le", "instance", "job"}.union(*(told[name][1] for name in known)), title


def dashboard_queries() -> list[tuple[str, str, str]]:
    """The title of each panel, with its queries and their legends."""
    dashboard = json.loads(resources.files("pkgrepo.management.metrics").joinpath("dashboard.json").read_text())
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in dashboard["panels"]]
    assert len(set(places)) == len({each["id"] for each in dashboard["panels"]}) == len(places)
    return [
        (each["title"], one["expr"], one["legendFormat"]) for each in dashboard["panels"] for one in each["targets"]
    ]


def alert_queries() -> list[tuple[str, str, str]]:
    """The name of each alert, with its query and its texts."""
    rules = yaml.safe_load(resources.files("pkgrepo.management.metrics").joinpath("alerts.yaml").read_text())
    found = [rule for group in rules["groups"] for rule in group["rules"]]
    for each in found:
        assert each.keys() <= {"alert", "expr", "for", "labels", "annotations"}, each
        assert each["labels"]["severity"] in ("critical", "warning", "info")
        assert each["annotations"].keys() == {"summary", "description"}
    return [(each["alert"], each["expr"], " ".join(each["annotations"].values())) for each in found]


@pytest.mark.parametrize(("title", "expression", "texts"), [*dashboard_queries(), *alert_queries()])
def test_queries_are_of_the_language(title: str, expression: str, texts: str) -> None:
    promql_parser.parse(expression)  # raises a ValueError


async def test_metrics_can_be_switched_off(make_stack: Any) -> None:
    stack: Stack = await make_stack(metrics__enabled=False)
    assert (await stack.call("GET", "/metrics")).status == 404
