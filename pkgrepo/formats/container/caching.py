"""Puts answers to reads of images in the answer cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pkgrepo.gateway.answers.answer_cache import AnswerCache
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader

from .target import Target


def cache_answer(
    cache: AnswerCache,
    request: Request,
    target: Target,
    answer: Answer,
    *,
    fresh: Callable[[Reader], bool],
    generation: int,
    ends_s: int = 0,
    **rest: Any,
) -> None:
    """
    Cache an answer for the repository that the request addresses, which may be a virtual one around that of the image.

    It is the same for all clients; ``rest`` are further fields of L{CachedAnswer}.
    """
    terms = target.terms
    if terms is not None:
        if not terms.cacheable:
            return
        unchanged, of_member = terms.unchanged, fresh
        generation = terms.generation  # a member may have got the image while another one was read
        ends_s = min(filter(None, (ends_s, terms.ends_s)), default=0)

        def fresh(r: Reader) -> bool:
            return unchanged(r) and of_member(r)

    cache.put_answer(
        request, target.shown, answer, package=target.image, fresh=fresh, generation=generation, ends_s=ends_s, **rest
    )
