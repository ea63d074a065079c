"""What a launch was confirmed with, as the journal keeps it: its cap and its dearest price."""

import sqlite3
from datetime import timedelta
from decimal import Decimal

from providers.interface import LaunchSpec
from providers.journal.ledger import price_within, usd_for
from providers.pools.node_pool import NodePool
from providers.terms import Terms

TABLE = (
    "CREATE TABLE IF NOT EXISTS terms (run TEXT PRIMARY KEY, self_destroy INTEGER NOT NULL, "
    "max_usd TEXT, most_usd_per_hour TEXT)"
)
"""Beside the first tables, and made with the first launch: older versions pass over it."""

IDLE_TABLE = "CREATE TABLE IF NOT EXISTS idle_rules (run TEXT PRIMARY KEY, idle_s INTEGER NOT NULL)"
"""The same for runs with an idle rule; older versions write rows of `terms` by their columns."""

POOL_TABLE = (
    "CREATE TABLE IF NOT EXISTS node_pools (run TEXT PRIMARY KEY, provider TEXT NOT NULL, "
    "cluster TEXT NOT NULL, cluster_id TEXT NOT NULL, min_nodes INTEGER, max_nodes INTEGER)"
)
"""The same for runs that are node pools."""


def terms_of(spec: LaunchSpec) -> Terms:
    """Return the terms of a launch that is about to be made."""
    offer = spec.places[0].offer
    day = spec.marks.deadline - timedelta(seconds=float(spec.ttl_s))
    previewed = usd_for(offer, spec.most_machines, spec.most_s, day)
    dearest = None if offer is None else offer.usd_per_hour
    if offer is not None and offer.purchase == "spot":
        dearest = price_within(offer, spec.most_machines, spec.most_s, day, spec.max_usd)
    return Terms(
        self_destroy=spec.self_destroy,
        max_usd=None if spec.max_usd == previewed else spec.max_usd,
        most_usd_per_hour=dearest,
        idle_s=spec.idle_s,
        pool=spec.pool,
    )


def to_row(run: str, terms: Terms) -> tuple[str | int | None, ...]:
    """Return the values of a row; money is text."""
    money = (terms.max_usd, terms.most_usd_per_hour)
    return run, int(terms.self_destroy), *(None if usd is None else str(usd) for usd in money)


def pool_row(run: str, pool: NodePool) -> tuple[str | int | None, ...]:
    """Return the values of a row of the table of pools."""
    return (run, pool.provider, pool.cluster, pool.cluster_id, pool.min_nodes, pool.max_nodes)


def pool_from_row(row: sqlite3.Row) -> NodePool:
    """Return the pool that `pool_row` wrote."""
    return NodePool(**{name: row[name] for name in row.keys() if name != "run"})  # noqa: SIM118 - a row has no items


def from_row(row: sqlite3.Row, idle_s: int | None, pool: NodePool | None) -> Terms:
    """Return the terms that `to_row` wrote, with the idle rule and the pool of the run."""
    money = (row["max_usd"], row["most_usd_per_hour"])
    cap, dearest = (None if text is None else Decimal(text) for text in money)
    return Terms(
        self_destroy=bool(row["self_destroy"]),
        max_usd=cap,
        most_usd_per_hour=dearest,
        idle_s=idle_s,
        pool=pool,
    )
