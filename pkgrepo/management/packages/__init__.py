"""Packages, versions and files of every format: lists, search, the tree of files, removal and yanking."""
