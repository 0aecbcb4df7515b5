"""Spans of requests and of the work for them, over a whole server without ports and upstreams on real sockets."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.composition.tracing import export, setup
from pkgrepo.composition.tracing.export import Provider
from pkgrepo.composition.tracing.spans import Tracing
from pkgrepo.config.kinds import Secret
from pkgrepo.config.sections.server import Traces
from pkgrepo.errors import Invalid
from pkgrepo.http.answering.dispatch import ProcessedRequest
from pkgrepo.model.users import TokenKind
from pkgrepo.proxy.upstream.client import Upstream
from pkgrepo.storage.blobs.receiving import ReceivedUpload
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from tests.support.inprocess_server import no_failures, reactor, server_config, turn
from tests.support.memory_server import Stack
from tests.support.ports import closed_port
from tests.support.receivers import Receiver
from tests.support.upstreams.faults import redirect
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.server import ScriptedUpstream

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SECRET = make_token(TokenKind.PERSONAL)


class Traced:
    """A server; ``spans`` ends it and returns its spans by name."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.stack = Stack(folder, proxy__allow_private=["127.0.0.1"])
        self.stack.assembly._tracing = Tracing(Traces(**settings), reactor, self._exporter)
        self._stopped = False

    async def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            await self.stack.stop()

    async def spans(self) -> list[Any]:
        await self.stop()
        return list(self._exporter.get_finished_spans())


@pytest_twisted.async_yield_fixture
async def traced(tmp_path: Path) -> Any:
    """Starts traced servers, and stops them at the end."""
    servers: list[Traced] = []

    async def start(**settings: Any) -> Traced:
        servers.append(Traced(tmp_path / str(len(servers)), **settings))
        await servers[-1].stack.start()
        return servers[-1]

    with no_failures():
        yield start
        for each in servers:
            await each.stop()


def named(spans: list[Any], name: str) -> list[Any]:
    return [each for each in spans if each.name == name]


def parent_of(spans: list[Any], span: Any) -> Any:
    return next(each for each in spans if each.context.span_id == span.parent.span_id)


async def test_a_publish_has_spans_of_its_catalog_and_blobs(traced: Any) -> None:
    server = await traced()
    await server.stack.add_repository()
    await server.stack.publish("main/py", "demo", "1.0")
    spans = await server.spans()
    (put,) = named(spans, "PUT repositories")
    assert put.kind is SpanKind.SERVER
    assert put.parent is None
    assert put.attributes["http.response.status_code"] == 201
    assert put.attributes["pkgrepo.repository"] == "main/py"
    inner = [each for each in spans if each.parent is not None and parent_of(spans, each) is put]
    assert {"catalog write", "catalog look", "blob seal", "blob commit_together"} <= {each.name for each in inner}
    writes = [each.attributes["code.function.name"] for each in named(inner, "catalog write")]
    assert all(each.startswith("pkgrepo.") for each in writes)
    assert all(put.start_time <= each.start_time <= put.end_time for each in inner)


async def test_a_request_continues_the_trace_of_its_client(traced: Any) -> None:
    server = await traced()
    fields = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b", "X-Request-Id": "from-the-client"}
    await server.stack.call("GET", "/api/info", headers=fields)
    (span,) = named(await server.spans(), "GET api")
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    assert span.attributes["pkgrepo.request_id"] == "from-the-client"


@pytest.mark.parametrize("value", ["", "00-0-0-01", f"00-{TRACE}-{PARENT}-01, 00-{TRACE}-{PARENT}-01", "\xff" * 500])
async def test_a_wrong_traceparent_begins_a_new_trace(traced: Any, value: str) -> None:
    server = await traced()
    server_fields = {"traceparent": value.encode("ascii", "ignore").decode()}
    reply = await server.stack.call("GET", "/healthz", who=None, headers=server_fields)
    assert reply.status == 200
    (span,) = named(await server.spans(), "GET healthz")
    assert span.parent is None


async def test_what_a_trace_does_not_record_has_no_spans(traced: Any) -> None:
    server = await traced()
    await server.stack.call("GET", "/api/users", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert await server.spans() == []


async def test_none_are_recorded_of_none_percent_but_those_that_are_asked_for(traced: Any) -> None:
    server = await traced(sample_percent=0)
    await server.stack.call("GET", "/api/users")
    await server.stack.call("GET", "/healthz", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
    spans = await server.spans()
    assert {f"{each.context.trace_id:032x}" for each in spans} == {TRACE}


async def test_nothing_secret_is_in_spans(traced: Any) -> None:
    server = await traced()
    await server.stack.call("GET", f"/repositories/main/{SECRET}/x?token={SECRET}&password=hidden")
    await server.stack.call(
        "POST", f"/api/login?x={SECRET}", {"username": "admin", "password": "correct horse battery"}
    )
    spans = await server.spans()
    texts = [f"{each.name} {dict(each.attributes)} {each.status.description} {each.events}" for each in spans]
    assert len(named(spans, "GET repositories")) == len(named(spans, "POST api")) == 1
    assert not [each for each in texts if SECRET in each or "hidden" in each or "correct horse" in each]


async def test_an_answer_that_the_server_could_not_give_is_an_error(traced: Any) -> None:
    server = await traced()

    def fail() -> Any:
        raise OSError(errno.EMFILE, "too many open files")

    site = server.stack.assembly.site
    site.request_context, context = fail, site.request_context
    assert (await server.stack.call("GET", "/healthz", who=None)).status == 503
    site.request_context = context
    assert (await server.stack.call("GET", "/nowhere", who=None)).status == 404
    spans = await server.spans()
    (failed,), (absent,) = named(spans, "GET healthz"), named(spans, "GET other")
    assert failed.attributes["http.response.status_code"] == 503
    assert failed.status.status_code is StatusCode.ERROR
    assert absent.status.status_code is StatusCode.UNSET


async def test_repeated_requests_have_spans_with_their_ids(traced: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await traced()
    await server.stack.add_repository()
    await server.stack.publish("main/py", "demo", "1.0")
    site = server.stack.assembly.site
    repeated: list[bytes] = []
    log_repeat = site.log_repeat
    monkeypatch.setattr(site, "log_repeat", lambda *seen: (repeated.append(seen[2]), log_repeat(*seen)))
    transport = StringTransport()
    channel = site.buildProtocol(None)
    channel.makeConnection(transport)
    ids: list[bytes] = []
    for number in range(1, 8):
        channel.dataReceived(b"GET /repositories/main/py/simple/demo/ HTTP/1.1\r\nHost: registry.example\r\n\r\n")
        while len(ids) < number:
            await turn()
            ids = re.findall(rb"X-Request-Id: (\S+)", transport.value())
    channel.connectionLost(Failure(ConnectionDone()))
    assert repeated
    spans = named(await server.spans(), "GET repositories")
    assert [each.attributes["pkgrepo.request_id"].encode() for each in spans] == ids
    assert {each.attributes["http.response.status_code"] for each in spans} == {200}
    assert all(each.parent is None and each.start_time <= each.end_time for each in spans)


async def asked(server: Traced, upstream: ScriptedUpstream, **fields: str) -> Any:
    await server.stack.add_repository(
        "mirror", config={"type": "Proxy", "proxy": {"routes": [{"url": f"{upstream.url}/simple/", "name": "up"}]}}
    )
    await server.stack.call("GET", "/repositories/main/mirror/simple/demo/?secret=hidden", headers=dict(fields))
    return upstream.requests()[0]


PAGE = Answer(body=b"<!DOCTYPE html><html><body></body></html>", fields={"Content-Type": "text/html"})


async def test_an_upstream_has_a_span_and_gets_no_id(traced: Any) -> None:
    server = await traced()
    with ScriptedUpstream({"/simple/demo/": PAGE}) as upstream:
        request = await asked(server, upstream, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="a=b")
        assert not {"traceparent", "tracestate", "x-request-id"} & request.fields.keys()
        spans = await server.spans()
    span = named(spans, "upstream GET")[0]
    assert f"{span.context.trace_id:032x}" == TRACE
    assert parent_of(spans, span).name == "GET repositories"
    assert span.attributes["server.address"] == "127.0.0.1"
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["pkgrepo.upstream"] == "up"
    assert "hidden" not in str([dict(each.attributes) for each in spans])


async def test_a_configured_upstream_gets_the_id_of_its_span_and_no_host_behind_it(traced: Any) -> None:
    server = await traced(propagate_to=("127.0.0.1",))
    with ScriptedUpstream({"/simple/demo/": PAGE}) as other, ScriptedUpstream() as upstream:
        upstream.documents["/simple/demo/"] = redirect(f"{other.url}/simple/demo/")
        request = await asked(server, upstream, traceparent=f"00-{TRACE}-{PARENT}-01")
        assert "traceparent" not in other.requests()[0].fields
        spans = await server.spans()
    span = named(spans, "upstream GET")[0]
    assert request.fields["traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01"


async def test_an_upstream_that_fails_is_an_error_without_its_sentence(traced: Any) -> None:
    server = await traced()
    with ScriptedUpstream({"/simple/demo/": Answer(status=403, body=b"hidden reason")}) as upstream:
        await asked(server, upstream)
        spans = await server.spans()
    span = named(spans, "upstream GET")[0]
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.attributes["error.type"] == "UpstreamDenied"


async def test_wrappers_are_gone_when_the_last_traced_server_has_stopped(traced: Any) -> None:
    places = [(SqliteCatalog, "write"), (ReceivedUpload, "commit"), (Upstream, "open")]
    before = [vars(owner)[name] for owner, name in places]
    first, second = await traced(), await traced()
    during = [vars(owner)[name] for owner, name in places]
    assert not set(during) & set(before)
    await second.stack.call("GET", "/api/users")
    await first.stop()
    assert [vars(owner)[name] for owner, name in places] == during
    assert named(await second.spans(), "GET api")
    assert [vars(owner)[name] for owner, name in places] == before
    assert await first.spans() == []


async def test_a_server_without_traces_has_no_wrappers(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    await stack.start()
    assert stack.assembly._tracing is None
    assert stack.assembly.site.request_class is ProcessedRequest
    await stack.stop()


def test_the_library_is_not_imported_without_traces() -> None:
    program = "import sys, pkgrepo.service; sys.exit(any('opentelemetry' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(setup, "import_module", fail)
    config = server_config(tmp_path, traces__endpoint="http://127.0.0.1:4318")
    with pytest.raises(Invalid, match=r'pip install "WHEEL\[traces\]"'):
        Stack(tmp_path, traces__endpoint=config.traces.endpoint)


async def test_a_dead_collector_is_one_line_in_the_log_and_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    settings = server_config(tmp_path, traces__endpoint=url, traces__authorization="Bearer hidden").traces
    with capturedLogs() as events:
        provider = Provider(settings, reactor)
        for _ in range(export.QUEUE * 2):
            provider.tracer.start_span("one").end()
        await provider.stop()
    (line,) = [formatEvent(each) or "" for each in events if "spans" in (formatEvent(each) or "")]
    assert line.startswith(f"spans cannot be sent to {url}, and are dropped: ")
    assert "hidden" not in line


async def test_a_collector_that_does_not_answer_does_not_hold_up_the_stop() -> None:
    receiver = Receiver()
    receiver.released.clear()
    try:
        with capturedLogs() as events:
            provider = Provider(Traces(endpoint=receiver.url), reactor)
            provider.tracer.start_span("one").end()
            await provider.stop(within_s=0.01)
        texts = [formatEvent(each) for each in events]
        assert "the last spans were not sent: the collector is too slow" in texts
    finally:
        receiver.close()


async def test_a_redirect_of_the_collector_is_not_followed() -> None:
    receiver, other = Receiver(), Receiver()
    receiver.answer = lambda _: (307, {"Location": f"{other.url}/v1/traces"})
    try:
        with capturedLogs() as events:
            provider = Provider(Traces(endpoint=receiver.url, authorization=Secret("Bearer hidden")), reactor)
            provider.tracer.start_span("one").end()
            await provider.stop()
        assert receiver.messages[0].fields["authorization"] == "Bearer hidden"
        assert not other.messages
        assert f"spans cannot be sent to {receiver.url}, and are dropped: it answers 307" in map(formatEvent, events)
    finally:
        receiver.close()
        other.close()
