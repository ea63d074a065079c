"""Laws of one quantity each: estimates, speeds, communication, power, interruptions.

They know no job and no offer. `coefficients` reads the fitted figures in `data/`.
"""
