"""What fits a terminal: its size, paragraphs and tables within it."""
