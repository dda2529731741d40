"""What may happen: authorise, check, write, record; one transaction a change."""
