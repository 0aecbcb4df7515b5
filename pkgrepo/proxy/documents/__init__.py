"""
Metadata of upstreams, served from what is kept while it is fresh (``freshness``). Else the routes are asked in order
(``refreshing``), one question after the other (``asking``), and their answers are kept (``kept_answers``). ``held`` has
the questions and the answers.
"""
