"""NVIDIA GPUs through the driver's own library (NVML)."""
