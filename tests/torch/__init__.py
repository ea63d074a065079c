"""The probe with real PyTorch: `make torch-test`. Skipped where PyTorch is not installed."""
