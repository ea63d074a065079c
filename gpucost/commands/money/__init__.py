"""Commands about prices and bills."""
