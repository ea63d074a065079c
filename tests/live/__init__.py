"""Real servers of metrics, with a history that was filled in: `make live-test`."""
