"""DigitalOcean, through pydo."""
