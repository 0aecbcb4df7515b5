"""The command line: here commands on the data folder of a server; ``remote`` and ``deploy`` talk to servers."""
