"""
Between HTTP and the repositories: callers, mounts, request bodies, files as answers, and cached responses.

All formats use this room, so that each of these is done in one way.
"""
