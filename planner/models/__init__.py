"""Laws of one quantity each: estimates, speeds, communication, power, interruptions."""
