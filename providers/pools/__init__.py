"""Node pools of managed Kubernetes clusters: what every provider of them has in common."""
