"""
``twistd`` with other catalogs than the configuration says.

The arguments are ``delay SECONDS`` or ``postgresql CONNECTION_STRING``, and then those of twistd.
"""

import sys

from twisted.scripts.twistd import run

from tests.support.delayed_catalog import delay_catalogs
from tests.support.server_databases import use_postgresql

PATCHES = {"delay": lambda value: delay_catalogs(float(value)), "postgresql": use_postgresql}

if __name__ == "__main__":
    PATCHES[sys.argv.pop(1)](sys.argv.pop(1))
    run()
