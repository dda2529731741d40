"""HTTP in, the port out: routes translate and call one verb; they decide nothing."""
