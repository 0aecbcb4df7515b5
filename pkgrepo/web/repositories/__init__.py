"""The pages of one repository: its packages, its files, how to set up clients, and its upstreams."""
