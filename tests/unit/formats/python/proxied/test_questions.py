"""Where upstreams are asked."""

from __future__ import annotations

import pytest

from pkgrepo.formats.python.proxied.upstream import index_probes, list_question, page_question

HOST = "https://index.example"


@pytest.mark.parametrize(
    ("url", "indexes"),
    [
        (f"{HOST}/", [f"{HOST}/simple/", f"{HOST}/"]),
        (f"{HOST}/pypi/web", [f"{HOST}/pypi/web/simple/", f"{HOST}/pypi/web/"]),
        (f"{HOST}/simple", [f"{HOST}/simple/"]),
        (f"{HOST}/Simple/", [f"{HOST}/Simple/"]),
        (f"{HOST}/root/dev/+simple", [f"{HOST}/root/dev/+simple/"]),
        (f"{HOST}/root/dev/%2Bsimple", [f"{HOST}/root/dev/%2Bsimple/"]),
        (f"{HOST}/notsimple", [f"{HOST}/notsimple/simple/", f"{HOST}/notsimple/"]),
    ],
)
def test_the_url_of_a_route_is_that_of_the_index_or_the_one_above(url: str, indexes: list[str]) -> None:
    assert list(list_question().urls(url)) == indexes
    assert list(page_question("x-y").urls(url)) == [f"{index}x-y/" for index in indexes]
    assert [probe for probe, _ in index_probes(url)] == indexes
