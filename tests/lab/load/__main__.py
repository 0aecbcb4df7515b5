"""See L{tests.lab.load.run}."""

import sys

from .run import main

sys.exit(main(sys.argv[1:]))
