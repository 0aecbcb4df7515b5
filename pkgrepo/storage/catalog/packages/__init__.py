"""Packages, versions, files, tags and their events: queries and write commands."""
