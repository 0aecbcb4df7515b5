"""
The documents of a channel, made of one record for each package file.

``records`` writes the records with each change. ``channel`` reads them, ``repodata`` and its neighbours join them, and
``requests`` answers.
"""
