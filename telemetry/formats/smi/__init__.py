"""What NVIDIA's command line tools, and tools like them, print about a machine's GPUs."""
