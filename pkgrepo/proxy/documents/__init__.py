"""
Metadata of upstreams: an upstream is asked (``asking``), and its answer is kept (``kept_answers``) while it is fresh,
or while nothing better can be had (``freshness``). ``held`` has the questions and the answers.
"""
