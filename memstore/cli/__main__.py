"""`python -m memstore.cli`: the command, where no console script is installed."""

from memstore.cli.main import run

run()
