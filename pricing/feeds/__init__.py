"""Public price feeds, one reader a file: documents in, dated prices out; `feeds.py` lists them."""
