"""Whole repositories in and out: imports, mirrors of lock files, replication, static twins and backups."""
