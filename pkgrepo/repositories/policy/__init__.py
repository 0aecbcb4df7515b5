"""
Rules about what is served: how they are written, and what they decide of a version, file or image.

A rule set is compiled once for each state of the configuration; it decides over facts, wherever these come from.
"""
