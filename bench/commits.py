"""A process that measures what SQLite itself can commit: rows of 2 KB, synchronous=FULL, WAL.

Arguments: a database file, how many commits, how many rows a commit. Prints rows a second.
"""

from __future__ import annotations

import sqlite3
import sys
import time


def main() -> None:
    path, commits, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, text TEXT)")
    text = "x" * 2048
    started = time.perf_counter()
    for _ in range(commits):
        database.execute("BEGIN IMMEDIATE")
        for _ in range(rows):
            database.execute("INSERT INTO texts (text) VALUES (?)", (text,))
        database.execute("COMMIT")
    print(commits * rows / (time.perf_counter() - started))


if __name__ == "__main__":
    main()
