"""Packages, versions and files: listed, searched, removed."""
