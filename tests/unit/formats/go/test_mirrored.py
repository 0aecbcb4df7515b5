"""What a lock file of Go names, and the hashes that it has of files."""

from __future__ import annotations

import pytest

from pkgrepo.archives.module_zip import LARGEST_FILE, h1_of_mod
from pkgrepo.errors import Invalid
from pkgrepo.formats.go.mirrored import MIRRORED
from tests.support.go_modules import go_mod

PATH = "example.com/demo/@v/v1.0.0.mod"


def test_a_go_mod_has_the_hash_that_go_sum_names() -> None:
    content = go_mod("example.com/demo")
    assert MIRRORED.hashes["h1"](content, PATH) == h1_of_mod(content)


def test_a_go_mod_that_no_client_reads_is_not_read_into_memory() -> None:
    with pytest.raises(Invalid, match="more than"):
        MIRRORED.hashes["h1"](bytes(LARGEST_FILE + 1), PATH)
