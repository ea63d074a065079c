"""What the tools and the exporter of AMD GPUs give."""
