"""What misbehaving upstreams of proxies answer, and what clients get then."""

from __future__ import annotations

import itertools

from attrs import evolve

from tests.support.proxied import PRIVATE
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Fault

CONFIGURATION = (
    PRIVATE
    + """
connect_timeout = "2s"
idle_timeout = "2s"
document_timeout = "4s"
max_document_size = "1MiB"
"""
)
PRIVATE_ADDRESS = "http://10.255.255.1/"
FAILED, UNAVAILABLE, TIMEOUT, DENIED, MISCONFIGURED = {502}, {502, 503}, {504}, {403}, {424}


def redirect_to_itself(answer):
    return faults.redirect("?again")


def shortened(answer):
    return evolve(answer, body=bytes(answer.body)[:-10])


# What the client of a document gets that is not in the cache.
ANSWERS = {
    "silent": (faults.STALL_BEFORE_HEAD, TIMEOUT),
    "stalled": (faults.STALL_IN_BODY, TIMEOUT),
    "truncated": (faults.TRUNCATED, UNAVAILABLE),
    "reset": (faults.RESET, UNAVAILABLE),
    "closed": (faults.NO_ANSWER, UNAVAILABLE),
    "unfinished": (faults.CHUNKED_WITHOUT_END, UNAVAILABLE),
    "shortened": (shortened, FAILED),
    "error": (faults.failing(500), UNAVAILABLE),
    "unavailable": (faults.failing(503, "2"), UNAVAILABLE),
    "limited": (faults.failing(429, "2"), {429, 503}),
    "unauthorized": (faults.failing(401), MISCONFIGURED),
    "forbidden": (faults.failing(403), DENIED),
    "teapot": (faults.failing(418), FAILED),
    "loop": (redirect_to_itself, FAILED),
    "private": (faults.redirect(PRIVATE_ADDRESS), MISCONFIGURED),
    "file": (faults.redirect("file:///etc/passwd"), FAILED),
    "unasked": (faults.not_modified, FAILED),
    "bomb": (faults.gzip_bomb(), FAILED),
    "endless": (faults.ENDLESS_BODY, FAILED | TIMEOUT),  # on a busy machine it is too late before it is too long
    "head": (faults.ENDLESS_HEAD, FAILED),
    "html": (faults.HTML, FAILED),
}

NUMBERS = itertools.count()  # of the repositories of one server
CUT_PAGE = evolve(faults.HTML, fault=faults.TRUNCATED)

# Of a file these come as a document; what is cut may also reach the client as far as it went.
WRONG_FILES = {
    name: step
    for name, (step, _) in ANSWERS.items()
    if name not in ("bomb", "endless")
} | {
    "corrupted": faults.corrupted,
    "small bomb": faults.gzip_bomb(64 * faults.MIB),
    "too long": lambda answer: evolve(answer, body=bytes(answer.body) + b"more"),
    "too long, cut": lambda answer: evolve(answer, fault=Fault(length=len(answer.body) + 4)),
    "reset": lambda answer: evolve(answer, ranges=False, fault=Fault(cut_at=len(answer.body) // 2, reset=True)),
    "silent": lambda answer: evolve(answer, ranges=False, fault=Fault(pause_at=len(answer.body) // 2)),
}  # fmt: skip
