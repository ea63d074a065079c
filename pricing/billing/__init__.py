"""How a use becomes a bill: each provider's rules, and lines that add up.

Prices of a gigabyte, an address or a service are `[[rule]]` rows in `pricing/data/billing`, read by
`billing_rule`, which also says how many bytes a unit has, and picked by `provider_rules`.
`storage`, `traffic` and `services` turn them into lines, `machine_time` what is billed by the hour,
`quote` adds them up.
"""
