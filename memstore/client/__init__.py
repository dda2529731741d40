"""The port over HTTP."""
