"""The traces that the configuration asks for; their library is optional, and is imported only where they are on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pkgrepo.config import Config
from pkgrepo.errors import Invalid

if TYPE_CHECKING:
    from pkgrepo.composition.tracing.spans import Tracing

NO_LIBRARY = 'traces need libraries that are not installed: pip install "WHEEL[traces]"'


def make_tracing(config: Config, reactor: Any) -> Tracing | None:
    """Return the tracing, which is not started; None without ``traces.endpoint``. :raises Invalid: see below"""
    if not config.traces.endpoint:
        return None
    made: Tracing = spans_module().Tracing(config.traces, reactor)
    return made


def spans_module() -> Any:
    """Import what records and sends spans, which takes half a second. :raises Invalid: a library is not installed"""
    try:
        return import_module("pkgrepo.composition.tracing.spans")
    except ImportError as error:
        raise Invalid(NO_LIBRARY) from error
