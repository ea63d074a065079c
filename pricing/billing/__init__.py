"""How a use becomes a bill: each provider's rules, and lines that add up.

Prices of a gigabyte, an address or a service are `[[rule]]` rows in `pricing/data/billing`, read by
`billing_rule`, which also says how many bytes a unit has, and picked by `provider_rules`.
`lines` says what they come to over a time; `ancillary` and `traffic` pick them for what a use asks
for, `machine_time` bills the machines, `quote` adds the lines up, over changes of price as well.
"""
