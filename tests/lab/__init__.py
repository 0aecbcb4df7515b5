"""
What the tests would not notice: plausible slips are made in a copy of the code, one at a time, and its tests run.

:mod:`.sites` finds where a slip could be in a file, :mod:`.copies` keeps the copy and runs tests in it, and
``bin/slips`` (:mod:`.slips`) chooses, tries and tells. The checkout itself is never changed.
"""
