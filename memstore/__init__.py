"""Versioned memory for agents: as ordinary as a directory, as trustworthy as a database."""

__version__ = "0.1.0"
