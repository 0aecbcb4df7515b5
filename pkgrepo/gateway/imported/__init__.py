"""
Taking in packages from elsewhere: what every format needs for it, and what a format says of it (``kinds``).

``places`` reads bytes and documents of addresses and folders; ``described`` joins what a server's own API knows to what
its clients' protocol lists. ``engine`` takes in what a source has, and ``files`` the packages that consist of files.
"""
