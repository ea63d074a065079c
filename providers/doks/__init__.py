"""Node pools of DigitalOcean Kubernetes clusters, through pydo."""
