#: block
