"""The probe, tried without PyTorch: a stand-in has the parts of it that the probe changes."""
