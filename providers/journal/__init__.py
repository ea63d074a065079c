"""What was launched, as this machine keeps it: intent before the call, and what it cost."""
