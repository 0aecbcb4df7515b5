"""
What a gem has inside that runs at its installation, or whenever somebody calls gem.

Extensions are built when a gem is installed, by code of the gem. A file ``rubygems_plugin.rb`` in a folder of code is
loaded by every call of ``gem`` from then on, that installation included.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.archives.inside import Signs, Word, look_inside

from .push.gem_metadata import inspect_gem

SIGNS: Final = Signs(names=[(re.compile(r"(?:^|/)rubygems_plugin\.rb$"), "install_script")])


def look(content: int | bytes, path: str) -> frozenset[Word]:
    """What a gem has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    found = look_inside(content, path, SIGNS)
    return found | {"install_script", "native_build"} if inspect_gem(content).extensions else found
