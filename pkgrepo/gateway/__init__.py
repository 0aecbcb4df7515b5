"""
Where HTTP meets the repositories: who asks, for which repository, and how bytes leave and arrive.

Every format stands on this room, so that a path is split, a caller checked, a file sent and an error told in one way.
"""
