"""The page of a plan: one file that works offline, drawn by Chart.js, which lies beside it."""
