"""``twistd`` with delayed catalogs: ``python -m tests.support.delayed_twistd SECONDS TWISTD_ARGUMENT...``."""

import sys

from twisted.scripts.twistd import run

from tests.support.delayed_catalog import delay_catalogs

if __name__ == "__main__":
    delay_catalogs(float(sys.argv.pop(1)))
    run()
