"""Service and mounts together on this machine: `up`, `down`, `status`."""
