"""Several jobs on fewer GPUs: who may share, how they are packed, which machines are left."""
