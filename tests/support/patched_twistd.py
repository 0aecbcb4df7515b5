"""
``twistd`` with the formats of the tests, and with other catalogs or another default storage than it is told.

The arguments are ``delay SECONDS``, ``postgresql CONNECTION_STRING``, ``s3 ENDPOINT`` or several of them, and then
those of twistd.
"""

import sys
from collections.abc import Sequence

from twisted.scripts.twistd import run

from tests.support.added_formats import add_formats
from tests.support.delayed_catalog import delay_catalogs
from tests.support.server_buckets import use_s3
from tests.support.server_databases import use_postgresql

PATCHES = {"delay": lambda value: delay_catalogs(float(value)), "postgresql": use_postgresql, "s3": use_s3}


def patch(arguments: Sequence[str]) -> None:
    """Apply the patches that are given as kind and value, one after another."""
    for kind, value in zip(arguments[::2], arguments[1::2], strict=True):
        PATCHES[kind](value)


if __name__ == "__main__":
    add_formats()
    while sys.argv[1] in PATCHES:
        patch([sys.argv.pop(1), sys.argv.pop(1)])
    run()
