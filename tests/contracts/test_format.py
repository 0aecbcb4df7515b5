"""The contract of package formats. Every format that is registered in the assembly is tested."""

import re
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

import msgspec
import pytest
from twisted.internet import reactor
from twisted.web.resource import IResource

from pkgrepo.composition.core import Core
from pkgrepo.errors import Invalid
from pkgrepo.gateway.format import Format
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository
from tests.support.format_cases import CASES
from tests.support.inprocess_server import server_config

# A path to which formats publish whose clients read another one, or that have no files.
PATHS = {"python": "packages/demo/1.0/demo-1.0.tar.gz", "docker": "demo/manifests/sha256:" + "0" * 64}


def registered():
    return Core(server_config(Path(tempfile.gettempdir()) / "never-made"), reactor).formats


FORMATS = registered()


@pytest.fixture(params=sorted(FORMATS))
def format_(request):
    return FORMATS[request.param]


@pytest.fixture
def repository():
    return MemoryCatalog().do(add_repository)


def test_the_format_is_registered_under_its_name(format_):
    assert isinstance(format_, Format)
    assert FORMATS[format_.name] is format_


def test_names_and_aliases_are_words_that_no_other_format_uses(format_):
    words = (format_.name, *format_.aliases)
    assert all(re.fullmatch(r"[a-z][a-z0-9]*", word) for word in words)
    others = {w for other in FORMATS.values() if other is not format_ for w in (other.name, *other.aliases)}
    assert not others & set(words)


def test_defaults_are_added_to_a_hosted_configuration_once(format_):
    config, settings = format_.configurations.validate({"type": "Hosted"})
    assert config["type"] == "Hosted"
    again, same = format_.configurations.validate({**config, **settings})
    assert (again, same) == (config, settings)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [({"type": "Hosted", "no_such_key": 1}, "/no_such_key"), ({"type": "Nonsense"}, "/type"), ({"type": 5}, "/type")],
)
def test_an_invalid_configuration_is_refused_with_its_path(format_, value, pointer):
    with pytest.raises(Invalid) as raised:
        format_.configurations.validate(value)
    assert raised.value.pointer == pointer
    assert str(raised.value)


def test_the_schema_is_json(format_):
    schema = format_.configurations.schema()
    assert isinstance(msgspec.json.decode(msgspec.json.encode(schema)), dict)


def test_making_a_resource_for_a_repository_does_not_query_the_catalog(format_, repository):
    services = MagicMock()
    assert IResource.providedBy(format_.resource(repository, services))
    assert services.catalog.mock_calls == []


@pytest.mark.parametrize("name", ["demo", "a"])
def test_normalising_a_key_again_does_not_change_it(format_, name):
    key = format_.package_key(CASES[format_.name].named(name) if format_.name in CASES else name)
    assert format_.package_key(key) == key
    version = format_.version_key("1.0.0")
    assert format_.version_key(version) == version


@pytest.mark.parametrize("name", ["", "..", "../x", "a\0b", "a/../b", "/a", "a b\n"])
def test_names_that_could_be_other_paths_are_refused(format_, name):
    with pytest.raises(Invalid):
        format_.package_key(name)


def test_readable_paths_stay_below_their_repository(format_, tmp_path):
    path = PATHS.get(format_.name) or CASES[format_.name].file_of("demo", "1.0.0")[1:]
    place = format_.layout.path(path)
    assert LayoutFolder(tmp_path).file(place).is_relative_to(tmp_path)


def test_client_setup_contains_the_url_and_no_secret(format_, repository):
    entries = format_.setup(f"https://host.example/prefix/repositories/{repository.path}", publishes=True)
    assert entries
    for entry in entries:
        assert set(entry) == {"client", "title", "file", "language", "text"}
        assert all(isinstance(value, str) for value in entry.values())
        assert entry["client"]
        assert entry["title"]
        assert entry["text"].endswith("\n")
    assert any("host.example" in entry["text"] for entry in entries)
