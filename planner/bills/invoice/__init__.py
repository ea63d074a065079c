"""What an invoice alone says of GPUs: hours and dollars, when, for nothing, and what to measure.

Nothing is guessed: dollars are put under a heading only where lines of the bill prove it, and every
figure names its lines. What the bill cannot tell is a sum of its own.
"""
