"""What is written from a plan: recipe, task for another tool, selection for an invoice, FOCUS."""
