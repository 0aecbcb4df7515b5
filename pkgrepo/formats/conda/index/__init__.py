"""
The documents of a channel, made of one record for each package file.

``packages`` writes the records with each change, and reads them. ``texts`` and ``documents`` join them, and
``requests`` answers.
"""
