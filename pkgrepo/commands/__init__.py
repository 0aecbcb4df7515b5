"""The administrator's command line."""
