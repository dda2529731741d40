"""The same verbs over HTTP. Imports the standard library, orjson and the model only."""
