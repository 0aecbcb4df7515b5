"""``twistd`` over catalogs that are delayed: ``python -m tests.support.delayed_twistd SECONDS`` and its arguments."""

import sys

from twisted.scripts.twistd import run

from tests.support.delayed_catalog import delay_catalogs

if __name__ == "__main__":
    delay_catalogs(float(sys.argv.pop(1)))
    run()
