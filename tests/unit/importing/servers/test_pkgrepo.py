"""What the API of another pkgrepo is believed to say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pkgrepo.formats.python.format import python
from pkgrepo.gateway.imported.items import Fact
from pkgrepo.importing.servers.pkgrepo import _Api
from pkgrepo.model import VersionState

VERSIONS = "http://there/api/package/main%2Fpy/demo/versions?limit=500"
PACKAGES = "http://there/api/repository/main%2Fpy/packages?limit=500"


def api(**pages: Any) -> tuple[_Api, list[str]]:
    """The API of a server with such pages, and what it is asked for."""
    asked: list[str] = []
    answers = {
        PACKAGES: {"items": [{"key": "demo", "downloads": 7}], "next": None},
        VERSIONS: {
            "items": [{"version": "1.0", "published_at": "1970-01-01T00:00:01Z", "publisher": "ann"}],
            "next": "x",
        },
        f"{VERSIONS}&cursor=x": {"items": [{"version": "1.1", "state": "yanked", "reason": "bad", "downloads": 3}]},
        f"{VERSIONS}&q=1.0": {"items": [{"version": "1.0", "downloads": 2}, {"version": "1.0.1", "downloads": 9}]},
    }

    async def json(url: str) -> Any:
        asked.append(url)
        return answers[url]

    site: Any = SimpleNamespace(url="http://there", json=json)
    return _Api(site, "main/py", python().imported), asked


async def test_what_is_known_of_a_package_and_its_versions_is_read_page_by_page() -> None:
    found, asked = api()
    assert [each async for each in found.names()] == ["demo"]
    assert await found.facts("demo") == {
        "": Fact(downloads=7),
        "1.0": Fact(published_ms=1000, publisher="ann"),
        "1.1": Fact(state=(VersionState.YANKED, "bad") if found._states else None, downloads=3),
    }
    assert asked == [PACKAGES, VERSIONS, f"{VERSIONS}&cursor=x"]


async def test_of_one_version_nothing_is_taken_of_others_that_have_its_text_in_theirs() -> None:
    found, _ = api()
    assert await found.facts("demo", "1.0") == {"": Fact(), "1.0": Fact(downloads=2)}
