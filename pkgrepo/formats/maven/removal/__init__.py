"""Deletions: what a path means, its removal from a hosted repository, and its eviction from the cache of a proxy."""
