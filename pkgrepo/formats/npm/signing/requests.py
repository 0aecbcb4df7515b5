"""The request for the registry's public keys."""

from __future__ import annotations

from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Refusal, json_answer

from .keys import find_public_key
from .signatures import keys_document


async def answer_keys(services: Services) -> Answer:
    """The keys that clients verify signatures with. :raises Refusal: nothing was signed yet"""
    key = await services.catalog.look(find_public_key)
    if key is None:
        raise Refusal(404, "nothing was signed here yet", "no_keys")
    return json_answer(keys_document([key]), headers=((b"Cache-Control", b"no-cache"),))
