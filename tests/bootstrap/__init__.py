"""The bootstrap of machines: well-formed, without a secret, and doing what it says."""
