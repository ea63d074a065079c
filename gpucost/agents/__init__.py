"""What programs that talk the Model Context Protocol may ask of gpucost, and spend with it."""
