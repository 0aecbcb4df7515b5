"""Answers with texts that people wrote, such as readmes."""

from __future__ import annotations

from pkgrepo.http.answers import NO_STORE, Answer, Fields

from .call import Call


def text_answer(call: Call, text: str, kind: str, headers: Fields = ()) -> Answer:
    """
    A text of the media type ``kind``, not rendered, that no browser runs.

    It is sent as text/plain, or as text/markdown if it is Markdown and the Accept field contains text/markdown.
    """
    accepted = call.request.header(b"accept") or b""
    shown = b"text/markdown" if kind == "text/markdown" and b"text/markdown" in accepted else b"text/plain"
    return Answer(
        body=text.encode("utf-8", "replace"),
        content_type=shown + b"; charset=utf-8",
        headers=(*NO_STORE, *headers, (b"Content-Security-Policy", b"sandbox; default-src 'none'")),
    )
