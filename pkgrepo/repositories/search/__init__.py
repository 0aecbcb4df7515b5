"""
Search over the packages of a repository, in memory.

``index`` has the texts of one repository and answers queries. ``index_cache`` builds an index on first use and updates
it from the events of the catalog. The format provides the texts.
"""
