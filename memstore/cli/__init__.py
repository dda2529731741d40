"""The command: parse, call one verb, print."""
