"""Retention: rules decide what of a repository goes by itself, for previews and for runs by a schedule."""
