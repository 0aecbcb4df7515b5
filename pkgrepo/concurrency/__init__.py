"""Waiting for one another: permits for scarce work, and work that several share. Knows nothing of packages."""
