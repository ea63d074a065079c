"""A stand-in for Lambda: the account, and the documented form of its requests."""
