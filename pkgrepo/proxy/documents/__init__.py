"""
Metadata of upstreams, served from what is kept while it is fresh (``freshness``). Else the routes are asked in order
(``refreshing``), one question after the other (``asking``), and their responses are kept (``kept_responses``). ``held``
has the questions and the responses.
"""
