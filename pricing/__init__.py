"""What a GPU-hour, a gigabyte and a month cost at each provider, and exactly how it is billed.

Pure: dated facts in `pricing.data`, `Decimal` arithmetic, no network and no clock. Read
`pricing.catalog.catalog` for the offers and `pricing.billing.quote` for the bill.
"""
