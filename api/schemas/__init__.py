"""The API's shapes: what may be sent (`requests`) and what comes back (`responses`)."""
