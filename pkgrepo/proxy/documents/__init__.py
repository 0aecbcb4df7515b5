"""
Metadata of upstreams (``cached``). One route is asked at a time (``asking``), and its responses are kept
(``kept_responses``); a list of its upstream may say that they are the present ones (``listings``). ``held`` has the
questions and the responses.
"""
