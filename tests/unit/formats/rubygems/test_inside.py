"""What of a gem runs when it is installed."""

from __future__ import annotations

import gzip

import pytest

from pkgrepo.formats.rubygems.inside import look
from tests.support.gems import make_gemspec, pack_gem
from tests.support.tarballs import make_tar

BUILD = {"install_script", "native_build"}


@pytest.mark.parametrize(
    ("extra", "file", "found"),
    [
        ("", "lib/demo.rb", set()),
        ("", "lib/rubygems_plugin.rb", {"install_script"}),
        ("", "lib/./Rubygems_plugin.RB", {"install_script"}),
        ("", "lib/rubygems_plugin.so", {"install_script"}),
        ("", "lib/rubygems_plugin", {"install_script"}),
        ("", "lib/rubygems_plugins.rb", set()),
        ("extensions:\n- ext/extconf.rb", "ext/extconf.rb", BUILD),
        ("", "ext/extconf.rb", set()),
    ],
)
def test_extensions_and_plugins_are_found(extra: str, file: str, found: set[str]) -> None:
    gem = pack_gem(make_gemspec(extra=extra), data=gzip.compress(make_tar([(file, b"x")])))
    assert look(gem, "demo-1.0.gem").words == found


def test_licences_are_those_of_the_specification_and_the_texts_at_the_top() -> None:
    mit = b"Permission is hereby granted, free of charge, to any person obtaining a copy"
    files = [("MIT-LICENSE", mit), ("lib/LICENSE", b"another")]
    gem = pack_gem(make_gemspec(extra="licenses:\n- BUSL-1.1"), data=gzip.compress(make_tar(files)))
    assert look(gem, "demo-1.0.gem").shape.licences == ("BUSL-1.1", "MIT")
