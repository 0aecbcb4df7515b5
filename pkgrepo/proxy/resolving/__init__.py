"""
What a repository of any type serves under a name: the members that may (``owners``) and do have it (``serving``), found
behind virtual repositories (``flat_members``) and by upstreams (``upstream_members``), and their contents joined to one
state or file.
"""
