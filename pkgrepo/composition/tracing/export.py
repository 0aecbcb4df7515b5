"""
The way of spans to a collector: a bounded queue, and one thread that sends it by OTLP over HTTP.

Spans that find the queue full, or that the collector does not take in time, are dropped. That is logged once until the
collector takes spans again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from threading import Thread
from typing import Any, Final
from uuid import uuid4

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from requests import RequestException, Response, Session, TooManyRedirects
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo import __version__
from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.config.sections.server import Traces
from pkgrepo.failure_log import FailureLog

QUEUE: Final = 4096  # spans that wait to be sent; each takes 2 KiB or so
BATCH: Final = 512  # spans in a request to the collector
EVERY_MS: Final = 2000
TIMEOUT_S: Final = 5  # of a request with all its tries
STOP_S: Final = 5.0  # how long a stop waits for the last spans
_NOISY: Final = ("opentelemetry.exporter", "opentelemetry.sdk")  # their log has a line for each try

log = Logger()


class Provider:
    """``tracer`` makes spans, which go to ``exporter``, or else to the collector of the settings."""

    def __init__(self, settings: Traces, reactor: Any, exporter: SpanExporter | None = None) -> None:
        for name in _NOISY:
            quiet = logging.getLogger(name)
            quiet.propagate = False
            quiet.addHandler(logging.NullHandler())
        self._reactor = reactor
        self._exporter = _Exporter(settings) if exporter is None else exporter
        self._processor = BatchSpanProcessor(
            self._exporter, max_queue_size=QUEUE, schedule_delay_millis=EVERY_MS, max_export_batch_size=BATCH
        )
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(settings.sample_percent / 100)),
            resource=Resource.create(
                {
                    "service.name": os.environ.get("OTEL_SERVICE_NAME", "pkgrepo"),
                    "service.version": __version__,
                    "service.instance.id": str(uuid4()),
                    "process.pid": os.getpid(),
                }
            ),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(self._processor)
        self.tracer = self._provider.get_tracer("pkgrepo", __version__)

    async def stop(self, within_s: float = STOP_S) -> None:
        """Send the last spans, and end the thread; after ``within_s`` seconds that goes on without being waited for."""
        if isinstance(self._exporter, _Exporter):
            self._exporter.is_last = True
        ended: Deferred[None] = Deferred()

        def end() -> None:
            if not ended.called:
                ended.callback(None)

        def shut_down() -> None:
            try:
                self._provider.shutdown()
            finally:
                self._reactor.callFromThread(end)

        Thread(target=shut_down, name="pkgrepo-traces-stop", daemon=True).start()
        try:
            await within(within_s, ended, self._reactor, "the collector takes no spans")
        except TimedOut:
            log.warn("the last spans were not sent: the collector is too slow")


class _Exporter(SpanExporter):
    """Sends spans to the collector, in the thread of the processor. With ``is_last`` it gives up after a failure."""

    def __init__(self, settings: Traces) -> None:
        secret = settings.authorization
        self.is_last = False
        self._failed = False
        self._session = _Session()
        self._inner = OTLPSpanExporter(
            endpoint=f"{settings.endpoint}/v1/traces",
            headers=None if secret is None else {"Authorization": secret.reveal()},
            timeout=TIMEOUT_S,
            session=self._session,
        )
        self._failures = FailureLog(log, f"spans cannot be sent to {settings.endpoint}, and are dropped")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans once, or drop them."""
        if self.is_last and self._failed:
            return SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        except Exception as error:  # noqa: BLE001 - of a library; the thread must live on
            if not isinstance(error, RequestException):
                self._session.problem = type(error).__name__
            result = SpanExportResult.FAILURE
        self._failed = result is not SpanExportResult.SUCCESS
        if self._failed:
            self._failures.failed(OSError(), reason=self._session.problem)
        else:
            self._failures.succeeded()
        return result

    def shutdown(self) -> None:
        """Close the connections to the collector."""
        untyped: Any = self._inner
        untyped.shutdown()
        self._session.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held here."""
        return self._inner.force_flush(timeout_millis)


class _Session(Session):
    """Connections to the collector; ``problem`` says why the last request failed."""

    problem = "it takes too long"

    def request(self, *args: Any, **kwargs: Any) -> Response:
        """Send a request; a redirect is not followed."""
        try:
            response = super().request(*args, **{**kwargs, "allow_redirects": False})
        except RequestException as error:
            self.problem = f"no connection ({type(error).__name__})"
            raise
        self.problem = f"it answers {response.status_code}"
        if response.is_redirect:
            raise TooManyRedirects(self.problem)  # else it counts as a success
        return response
