"""Two worker processes whose traces reach a collector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from attrs import frozen
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.configurations import proxy
from tests.support.ports import closed_port
from tests.support.receivers import Receiver
from tests.support.server_process import running
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.server import ScriptedUpstream
from tests.support.workers import connect_to_each

pytestmark = pytest.mark.server

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PAGE = Answer(body=b"<!DOCTYPE html><html><body></body></html>", fields={"Content-Type": "text/html"})


@pytest.fixture
def collector() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@frozen
class Sent:
    """A span that came, and the process that it is of."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    process: str


def sent_to(collector: Receiver) -> list[Sent]:
    found = []
    for message in collector.of("/v1/traces"):
        for of_process in ExportTraceServiceRequest.FromString(message.body).resource_spans:
            resource = {each.key: each.value.string_value for each in of_process.resource.attributes}
            assert resource["service.name"] == "pkgrepo"
            for scope in of_process.scope_spans:
                for each in scope.spans:
                    values = {one.key: one.value.string_value or one.value.int_value for one in each.attributes}
                    ids = each.trace_id.hex(), each.span_id.hex(), each.parent_span_id.hex()
                    found.append(Sent(each.name, *ids, values, resource["service.instance.id"]))
    return found


def test_each_worker_sends_its_spans_until_the_stop(tmp_path: Path, collector: Receiver) -> None:
    traces = f'[traces]\nendpoint = "{collector.url}/"\nauthorization = "Bearer of-the-collector"\n'
    with ScriptedUpstream({"/simple/demo/": PAGE}) as upstream:
        configuration = (
            f'[proxy]\nallow_private = ["127.0.0.1"]\n{traces}{proxy("python", "mirror", f"{upstream.url}/simple/")}'
        )
        with running(tmp_path, configuration, {"PKGREPO_SERVER__WORKERS": "2"}) as server:
            workers = connect_to_each(server.url)
            for worker in workers:
                worker.ask("GET", "/api/info")
                worker.close()
            requests.get(
                f"{server.url}/repositories/main/mirror/simple/demo/",
                headers={"traceparent": f"00-{TRACE}-{PARENT}-01"},
            )
        assert "traceparent" not in upstream.requests()[0].fields
        assert "of-the-collector" not in server.output
    spans = sent_to(collector)
    assert {each.fields["authorization"] for each in collector.messages} == {"Bearer of-the-collector"}
    asked = {
        (each.attributes["pkgrepo.request_id"].partition("-")[0], each.process)
        for each in spans
        if each.name == "GET api"
    }
    assert {worker for worker, _ in asked} == {each.worker for each in workers}
    assert len({process for _, process in asked}) == 2
    of_trace = {each.name: each for each in spans if each.trace == TRACE}
    request, question = of_trace["GET repositories"], of_trace["upstream GET"]
    assert request.parent == PARENT
    assert question.parent == request.id
    assert question.attributes["http.response.status_code"] == 200


def test_a_server_whose_collector_is_dead_serves_and_stops(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    with running(tmp_path, f'[traces]\nendpoint = "{url}"\n', {"PKGREPO_SERVER__WORKERS": "1"}) as server:
        for _ in range(20):
            assert requests.get(f"{server.url}/healthz").status_code == 200
    assert server.output.count(f"spans cannot be sent to {url}, and are dropped: ") == 1
