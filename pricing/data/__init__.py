"""The facts as files, each row with source, date and confidence; see README.md."""
