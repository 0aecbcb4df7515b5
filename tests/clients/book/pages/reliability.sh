#: not run: it takes half an hour; bin/test runs its parts
