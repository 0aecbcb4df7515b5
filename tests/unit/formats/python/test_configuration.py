"""The configuration of a Python repository: defaults, switches, and what is refused where."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.configuration import CONFIGURATIONS


def test_the_type_is_hosted_unless_it_is_said():
    assert CONFIGURATIONS.validate({}) == CONFIGURATIONS.validate({"type": "Hosted"}) == ({"type": "Hosted"}, {})


def test_switches_are_off_unless_they_are_set():
    _, settings = CONFIGURATIONS.validate({"policy": {"allow_overwrite": True}})
    assert settings["policy"]["allow_overwrite"] is True
    assert not settings["policy"].get("reuse_deleted_names")
    assert not settings["policy"].get("strict_filenames")


def test_keys_of_others_are_kept_when_they_say_so():
    _, settings = CONFIGURATIONS.validate({"x_team": ["a"], "page": "hello", "auth": {"enabled": True}})
    assert settings == {"x_team": ["a"], "page": "hello", "auth": {"enabled": True}}


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"type": "Group"}, "/type"),
        ({"polcy": {}}, "/polcy"),
        ({"policy": {"allow_overwirte": True}}, "/policy/allow_overwirte"),
        ({"policy": {"allow_overwrite": "yes"}}, "/policy/allow_overwrite"),
        ({"policy": []}, "/policy"),
        ({"auth": {"enabled": 1}}, "/auth/enabled"),
        ({"page": 1}, "/page"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(config, pointer):
    with pytest.raises(Invalid) as raised:
        CONFIGURATIONS.validate(config)
    assert raised.value.pointer == pointer


def test_the_schema_names_every_key():
    text = str(CONFIGURATIONS.schema())
    for key in ("allow_overwrite", "strict_filenames", "reuse_deleted_names", "enabled", "page"):
        assert key in text
