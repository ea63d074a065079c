"""Laws of one quantity each: estimates, speeds, communication, power, interruptions.

`coefficients` reads the fitted figures in `data/`.
"""
