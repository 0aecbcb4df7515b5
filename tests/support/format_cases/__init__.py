"""Packages of every format that has files, as clients publish and read them: a new format is added to ``CASES``."""

from __future__ import annotations

import re
from typing import Final

from .cargo import CARGO
from .conda import CONDA
from .go import GO
from .helm import HELM
from .maven import MAVEN
from .npm import NPM
from .python import PYTHON
from .raw import RAW
from .rubygems import RUBY
from .toy import TOY

CASES: Final = {each.format: each for each in (CARGO, NPM, PYTHON, RUBY, CONDA, MAVEN, HELM, GO, RAW, TOY)}
# What differs between two documents of the same content: signatures, revisions and times of the document.
VARIES: Final = re.compile(
    rb'<!--SERIAL \d+-->|"sig":"[^"]*"|"_rev":"[^"]*"|"modified":"[^"]*"|<lastUpdated>\d+</lastUpdated>|"_serial":\d+'
)
