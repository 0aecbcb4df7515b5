"""
Proxy and virtual repositories: what upstreams are asked, and what is kept of their responses.

``resolving`` decides what a repository serves, and ``caching`` what becomes of what is kept. ``documents`` keeps
the metadata of upstreams in the form that ``parts`` describes, ``transfers`` fetches files, ``upstream`` is the HTTP
client of one route. No format is known here by name.
"""
