"""
Documents of the compact index as answers.

Clients keep the plain form of a document, append to it what is new, and check the whole. So the validator is the MD5 of
the plain form in every content coding, and the digests are of it too.
"""

from __future__ import annotations

import base64
import gzip
from typing import Final

from pkgrepo.gateway.answers.content import SMALL, document_cache_control, is_private, plain_body
from pkgrepo.http.answering.negotiation import best_encoding
from pkgrepo.http.answers import Answer, Fields
from pkgrepo.http.request import Request
from pkgrepo.model import Document, Repository
from pkgrepo.storage.pools import Pool

from .gem_lists import BINARY_TYPE, TEXT_TYPE
from .list_files import ListFile

CODINGS: Final = (b"gzip", b"identity")
MAX_AGE: Final = b"max-age=60, public"


def text_document_answer(request: Request, repository: Repository, document: Document, cpu: Pool) -> Answer:
    """A document in the coding that the client wants. Only the plain form has ranges. ``cpu``: see L{plain_body}."""
    headers = (*_headers(repository, bytes.fromhex(document.digests["sha256"])), (b"Vary", b"Accept-Encoding"))
    packed = document.gzip
    if packed is not None and best_encoding(request.header(b"accept-encoding"), CODINGS) == b"gzip":
        headers = (*headers, (b"Content-Encoding", b"gzip"))
    else:
        packed = None
    return Answer(
        body=plain_body(document, cpu) if packed is None else packed,
        content_type=document.content_type.encode(),
        etag=_etag(document.digests["md5"]),
        headers=headers,
        ranges=packed is None,
    )


def list_answer(repository: Repository, found: ListFile) -> Answer:
    """A long list, always in the plain form."""
    return Answer(
        body=found.read() if found.size <= SMALL else found.content(),
        content_type=TEXT_TYPE.encode(),
        etag=_etag(found.md5.hexdigest()),
        headers=_headers(repository, found.sha256.digest()),
        ranges=True,
    )


def packed_answer(repository: Repository, document: Document) -> Answer:
    """A list of the legacy index as a gzip file."""
    return Answer(
        body=document.gzip or gzip.compress(document.body, mtime=0),
        content_type=BINARY_TYPE.encode(),
        etag=document.etag.encode(),
        headers=((b"Cache-Control", document_cache_control(repository)),),
        ranges=True,
    )


def _headers(repository: Repository, sha256: bytes) -> Fields:
    encoded = base64.b64encode(sha256)
    return (
        (b"Repr-Digest", b"sha-256=:%b:" % encoded),
        (b"Digest", b"sha-256=" + encoded),  # RFC 3230, which Bundler up to 2.5 reads
        (b"Cache-Control", b"private, no-cache" if is_private(repository) else MAX_AGE),
    )


def _etag(md5: str) -> bytes:
    return b'"%s"' % md5.encode("ascii")
