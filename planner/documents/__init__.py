"""What is written from a plan: the recipe, the selection for an invoice, the FOCUS export."""
