"""
Documents of upstreams made of what is kept of packages, after the catalog was rebuilt from the readable layout.

They lack what is not in the sidecars: all that was not fetched, and what upstreams say about a package as a whole. As
old answers they are served while upstreams fail, and replaced by the first one that answers.
"""

from __future__ import annotations

import io

from pkgrepo.model import Origin
from pkgrepo.proxy.parts.values import Normalised
from pkgrepo.proxy.parts.writing import write_parts
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .held import DocumentRequest


def restored_document(
    request: DocumentRequest, origin: Origin, normalised: Normalised
) -> tuple[UpstreamDocument, bytes]:
    """
    The answer to a question and its parts, as of the file that was fetched last, which has this ``origin``.

    :raises Invalid: see L{write_parts}
    """
    out = io.BytesIO()
    write_parts(out, normalised)
    document = UpstreamDocument(
        key=request.key,
        package_key=request.package_key,
        route=origin.route,
        fetched_ms=origin.fetched_ms,
        checked_ms=origin.fetched_ms,
        fresh_until_ms=origin.fetched_ms,
    )
    return document, out.getvalue()
