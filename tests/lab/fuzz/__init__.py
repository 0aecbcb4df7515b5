"""
Fuzzing that is kept: readers of bytes from outside, state machines over the stores, and the management API.

``targets`` are the readers, each with a corpus in ``tests/data/fuzz``. ``bin/faults --fuzz`` runs them for minutes,
guided by what they cover; the tests read the corpora, and some mutations. What a run finds is kept as a file.
"""
