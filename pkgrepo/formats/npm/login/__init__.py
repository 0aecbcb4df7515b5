"""``npm login`` in all its forms, and ``npm token``."""
