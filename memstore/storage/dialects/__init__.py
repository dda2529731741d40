"""What is particular to one database. Nothing outside knows SQLite from PostgreSQL."""
