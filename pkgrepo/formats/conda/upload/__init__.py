"""Uploads, in the ways of several tools: ``requests`` reads them, and ``publishing`` publishes what has arrived."""
