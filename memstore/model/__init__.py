"""What things are: frozen values and pure rules. Standard library only; no I/O."""
