"""What commands print, one module a document."""
