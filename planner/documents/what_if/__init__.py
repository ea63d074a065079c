"""What a plan would cost at other circumstances: one job, and the one total of all."""
