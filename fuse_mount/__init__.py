"""The driver: a store as a directory of ordinary text files."""
