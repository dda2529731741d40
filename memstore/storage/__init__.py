"""Where things are kept: the only SQL. Opened by `memstore.service` alone."""
