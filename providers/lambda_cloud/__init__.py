"""Lambda's On-Demand Cloud: launches, their end, live prices, over its HTTP API."""
