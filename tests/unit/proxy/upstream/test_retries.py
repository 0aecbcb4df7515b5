"""Pauses before second tries."""

import pytest
from twisted.internet.task import Clock

from pkgrepo.errors import (
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamLimited,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pkgrepo.proxy.upstream.retries import pause_before_retry, read_retry_after

NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("error", "pauses"),
    [
        (UpstreamUnavailable("main", "why"), [0.25, 0.75]),
        (UpstreamUnavailable("main", "why", 3), [3.5, 3.5]),
        (UpstreamUnavailable("main", "why", 6), [None]),
        (UpstreamLimited("main", "why", 0), [0.5, 0.5]),
        (UpstreamLimited("main", "why", 6), [None]),
        (UpstreamTimeout("main", "why"), [None]),
        (UpstreamForbiddenAddress("main", "why"), [None]),
        (UpstreamFailed("main", "why"), [None]),
    ],
)
def test_pauses(error, pauses):
    assert [pause_before_retry(error, tries + 1, lambda: 0.5) for tries in range(len(pauses))] == pauses


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("120", 120),
        ("9" * 50, 999_999_999),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2023 22:14:20", 60),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0),
        ("Tue, 99 Nov 2023 22:00:00 GMT", None),
    ],
)
def test_retry_after(value, seconds):
    clock = Clock()
    clock.advance(NOW)
    assert read_retry_after(value, clock) == seconds
