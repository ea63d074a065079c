"""As PyTorch has it."""
