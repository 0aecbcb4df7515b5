"""Storages: list, add, change, remove; their folders; and the probe that writes and reads one."""
