"""
Proxy and virtual repositories: what is fetched from upstreams, how it is cached, and which repository answers.

``upstream`` is the HTTP client of one route.
"""
