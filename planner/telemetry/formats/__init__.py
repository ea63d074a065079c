"""One module for each format that is read, and the table that tells them apart."""
