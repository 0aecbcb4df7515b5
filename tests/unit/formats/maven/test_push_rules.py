"""Which paths nobody may publish at."""

from __future__ import annotations

import pytest

from pkgrepo.formats.maven.paths import Checksum, parse_text
from pkgrepo.formats.maven.push_rules import PushRules, check_push_policy
from pkgrepo.http.responses import Refusal


@pytest.mark.parametrize(
    "path", ["solrsearch/select", ".twin/list", ".twin/maven-metadata.xml", ".bundle/facts.json", ".twin"]
)
def test_what_would_never_be_read_is_refused(path: str) -> None:
    target = parse_text(path)
    assert not isinstance(target, Checksum)
    with pytest.raises(Refusal, match="reserved"):
        check_push_policy(PushRules(), target)


@pytest.mark.parametrize("path", ["solrsearch/select.txt", "a/.twin/list", ".twins/list", "g/a/1/a-1.jar"])
def test_other_paths_are_free(path: str) -> None:
    target = parse_text(path)
    assert not isinstance(target, Checksum)
    check_push_policy(PushRules(), target)
