"""Work out a bill before it comes: each line with the rule and the source behind it.

python examples/api/quote_a_machine.py
"""

from datetime import date

import gpucost

catalog = gpucost.load_catalog(date(2026, 11, 22))
offer = catalog.find("digitalocean", "gpu-h100x8-640gb")
usage = gpucost.Usage(duration_s=90, as_of=catalog.as_of, egress_bytes=5 * 10**9)
bill = gpucost.quote(offer, usage)
for line in bill.lines:
    print(f"{line.what:8} {line.usd:>8.5f} USD = {line.how}")
print(f"total    {bill.total:>8} USD")
