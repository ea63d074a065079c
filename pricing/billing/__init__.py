"""How a use becomes a bill: each provider's rules, and lines that add up.

Prices of a gigabyte, an address or a service are `[[rule]]` rows in `pricing/data/billing`, read by
`billing_rule`, which also says how many bytes a unit has, and picked by `provider_rules`.
`amount` is what they come to over a time; `storage`, `beside` and `traffic` pick them for what is
asked for, `machine_time` bills the machines, `quote` adds the lines up, `sums` their dollars alone.
"""
