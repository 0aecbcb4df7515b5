"""Changes of what is published: ``gem yank``, its undoing, and ``gem owner``."""
