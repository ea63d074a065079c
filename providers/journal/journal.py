"""The journal: what was meant to be made, what was made, what is gone. SQLite, each write synced.

An intent is written before the call that makes a resource and its result after it, so whatever a
crash leaves behind is named here. The journal is a record and no authority: what exists is what the
provider lists with our marks, and `providers.lifecycle.reap` works with an empty one.
"""

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pricing.catalog.offer import Offer
from pricing.errors import InputError, RefusedError
from pricing.money import plain, usd
from providers.deployment import NodePool, Terms
from providers.interface import Creation, Deployment, JournaledResource, LaunchSpec, Resource
from providers.journal.journal_file import (
    BUSY_AGAIN_MS,
    FILE,
    DamagedJournalError,
    HeldJournalError,
    JournalError,
    memory_base,
    open_base,
    open_lock,
    set_aside,
    told,
)
from providers.journal.ledger import price_within, usd_for
from providers.ownership_tags import OwnershipTags
from providers.redaction import redact

__all__ = ("FILE", "Journal", "JournalError", "set_aside")

_Key = tuple[str, str, str, str]  # run, kind, name, region
_Known = tuple[str, str, str, str, str]  # and id


_FOUND = (
    "UPDATE resources SET id=?, state='made', billed_until=NULL, address=?, "
    "billed_from=COALESCE(billed_from, ?, CASE WHEN ? THEN intended_at END) "
    "WHERE run=? AND kind=?"
)


class Journal:
    """The journal in a folder, which is made if need be.

    Args:
        folder: of the state.
        lost: why the file cannot be used; the journal is then an empty one in memory, for a process
            that has to end machines all the same. Empty: the file is used.

    Raises:
        JournalError: the folder or the file cannot be used, or another version wrote it.
    """

    def __init__(self, folder: Path, *, lost: str = "") -> None:
        self.folder = folder
        self.path = folder / FILE
        self.lost = lost
        self._base = memory_base() if lost else open_base(folder)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is not known because the file could not be used, in words."""
        if not self.lost:
            return ()
        return (f"{self.lost} What only the journal knows was not looked at.",)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold one transaction, which is on the disk when it ends."""
        try:
            with told(self.path, "written"):
                self._base.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._base.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                        self._base.execute("ROLLBACK")
                    raise
        except HeldJournalError:
            self._base.execute(f"PRAGMA busy_timeout = {BUSY_AGAIN_MS}")
            raise

    def open_run(
        self, spec: LaunchSpec, predicted_usd: Decimal, at: datetime, account: str = ""
    ) -> None:
        """Write down a launch before anything is made for it."""
        first = spec.places[0]
        marks = spec.marks
        values = (marks.run, marks.owner, marks.plan, _time_text(marks.deadline), spec.provider)
        price = _price(first.offer)
        state_values = (first.region, price, spec.count, "launching", _time_text(at))
        with self._writing():
            self._insert("runs", (*values, *state_values, None, str(predicted_usd), "", account))
            self._run(TABLE)
            self._insert("terms", to_row(marks.run, terms_of(spec)))
            if spec.idle_s is not None:
                self._run(IDLE_TABLE)
                self._insert("idle_rules", (marks.run, spec.idle_s))
            if spec.pool is not None:
                self._run(POOL_TABLE)
                self._insert("node_pools", pool_row(marks.run, spec.pool))
            self._event(marks.run, at, f"launch of {spec.count} x {first.text}")

    def adopt_run(self, run: Deployment) -> None:
        """Write down a run that the provider knows and the journal does not."""
        marks, at = run.marks, _time_text(run.started_at)
        values = (marks.run, marks.owner, marks.plan, _time_text(marks.deadline), run.provider, "")
        state_values = (_price(run.offer), run.count, run.state, at, None, None, "", run.account)
        with self._writing():
            self._insert("runs", (*values, *state_values))
            self._event(marks.run, run.started_at, "adopted: found at the provider by its marks")

    def extend_run(
        self,
        run: str,
        deadline: datetime,
        usd: Decimal | None,
        max_usd: Decimal | None,
        at: datetime,
    ) -> None:
        """Write down a later deadline, the total by then, and the cap that was named for it."""
        with self._writing():
            self._run(
                "UPDATE runs SET deadline=?, predicted_usd=? WHERE run=?",
                _time_text(deadline),
                None if usd is None else str(usd),
                run,
            )
            if max_usd is not None:
                self._run(TABLE)
                self._run("UPDATE terms SET max_usd=? WHERE run=?", str(max_usd), run)
            self._event(run, at, f"extended: ends at {deadline:%Y-%m-%d %H:%M:%S} UTC")

    def place_run(self, run: str, region: str, offer: Offer | None) -> None:
        """Write down where the run is tried next."""
        self._change("UPDATE runs SET region=?, offer=? WHERE run=?", region, _price(offer), run)

    def mark_run(self, run: str, state: str, at: datetime, reason: str = "") -> None:
        """Write down how far the run is; with "ended" also when."""
        ended = _time_text(at) if state == "ended" else None
        with self._writing():
            self._run(
                "UPDATE runs SET state=?, ended_at=COALESCE(ended_at, ?), "
                "reason=CASE WHEN ?='' THEN reason ELSE ? END WHERE run=?",
                state,
                ended,
                reason,
                reason,
                run,
            )
            self._event(run, at, f"{state}{': ' if reason else ''}{reason}")

    def intend(self, run: str, creation: Creation, at: datetime) -> None:
        """Write down that a resource is about to be made.

        One of that name that was made before and is gone, at another place, keeps its own line:
        it has a bill.
        """
        values = (*_key(run, creation), "", "intended", _time_text(at), None, None, "")
        with self._writing():
            self._insert("resources", values)
            self._event(run, at, f"about to make {creation.kind} {creation.name}")

    def record(self, resource: Resource, at: datetime) -> None:
        """Write down that a resource was made, or was found: in the line of its id or intent.

        Where the provider does not tell when a machine was made, its bill begins with the intent,
        else with its launch: never too late.
        """
        run, born = resource.marks.run, resource.created_at
        key = (run, resource.kind, resource.name, resource.region)
        untold = resource.is_machine and born is None
        billed_from = None if born is None else _time_text(born)
        update = (resource.id, resource.address, billed_from, untold, run, resource.kind)
        with self._writing():
            updated = self._run(f"{_FOUND} AND id=?", *update, resource.id)
            if not updated.rowcount:
                intent = "AND name=? AND region=? AND id='' AND state='intended'"
                updated = self._run(f"{_FOUND} {intent}", *update, *key[2:])
            if not updated.rowcount:
                billed_from = _time_text(resource.marks.started or at) if untold else billed_from
                new_values = (
                    resource.id,
                    "made",
                    _time_text(at),
                    billed_from,
                    None,
                    resource.address,
                )
                self._insert("resources", (*key, *new_values))
            self._event(run, at, f"{resource.kind} {resource.name} is {resource.id}")

    def refuse(self, run: str, creation: Creation, at: datetime, why: str) -> None:
        """Write down that the provider refused, so that there is nothing of that intent."""
        event = f"refused {creation.name}: {why}"
        self._finish((*_key(run, creation), ""), "refused", None, at, event)

    def gone(self, run: str, entry: JournaledResource, at: datetime) -> None:
        """Write down that the provider said that a resource is gone; a machine's bill ends."""
        self._finish((*_key(run, entry), entry.id), "gone", at, at)

    def _finish(
        self, key: _Known, state: str, until: datetime | None, at: datetime, event: str = ""
    ) -> None:
        with self._writing():
            self._run(
                "UPDATE resources SET state=?, billed_until="
                "COALESCE(billed_until, CASE WHEN billed_from IS NOT NULL THEN ? END) "
                "WHERE run=? AND kind=? AND name=? AND region=? AND id=? "
                "AND state IN ('intended', 'made')",
                state,
                None if until is None else _time_text(until),
                *key,
            )
            self._event(key[0], at, event or f"{key[1]} {key[2]} is {state}")

    def note(self, run: str, at: datetime, event: str) -> None:
        """Write down what happened to a run."""
        with self._writing():
            self._event(run, at, event)

    def _event(self, run: str, at: datetime, event: str) -> None:
        self._insert("events", (run, _time_text(at), event))

    def _insert(self, table: str, values: tuple[Any, ...]) -> None:
        places = ",".join("?" * len(values))
        self._run(f"INSERT INTO {table} VALUES ({places})", *values)  # noqa: S608 - our names

    def _change(self, statement: str, *values: object) -> None:
        with self._writing():
            self._run(statement, *values)

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        """Run one statement; no secret gets into the file."""
        hidden = [redact(value) if isinstance(value, str) else value for value in values]
        return self._base.execute(statement, hidden)

    def deployments(self) -> tuple[Deployment, ...]:
        """Return every run, oldest first.

        Raises:
            JournalError: the file cannot be read.
        """
        return self._read("")

    def open_deployments(self) -> tuple[Deployment, ...]:
        """Return every run that has not ended, oldest first; as quick with ten thousand that have.

        Raises:
            JournalError: the file cannot be read.
        """
        return self._read("WHERE state <> 'ended'")

    def deployment(self, run: str) -> Deployment | None:
        """Return the run of that name; None where the journal has none."""
        return next(iter(self._read("WHERE run = ?", run)), None)

    def _read(self, which: str, *values: str) -> tuple[Deployment, ...]:
        """Return the runs of a WHERE clause of ours, each with its resources."""
        try:
            with told(self.path, "read"):
                runs = self._base.execute(
                    f"SELECT * FROM runs {which} ORDER BY started_at, run",  # noqa: S608 - ours
                    values,
                ).fetchall()
                rows = self._base.execute(
                    f"SELECT * FROM resources WHERE run IN (SELECT run FROM runs {which}) "  # noqa: S608 - ours
                    "ORDER BY rowid",
                    values,
                )
                entries: dict[str, list[JournaledResource]] = {}
                for row in rows:
                    entries.setdefault(row["run"], []).append(resource_from_row(row))
                agreed = self._terms(which, *values)
            return tuple(
                run_from_row(row, tuple(entries.get(row["run"], ())), agreed.get(row["run"]))
                for row in runs
            )
        except (ValueError, KeyError, ArithmeticError, InputError) as error:
            raise DamagedJournalError(
                f"{self.path}: the journal is damaged: a line cannot be read ({error}). "
                "`gpucost reap` works without it and sets it aside."
            ) from error

    def _terms(self, which: str, *values: str) -> dict[str, Terms]:
        """Return what was confirmed at the launch of runs, where it was written down."""
        idle = {
            row["run"]: row["idle_s"] for row in self._optional_rows("idle_rules", which, *values)
        }
        pools = {
            row["run"]: pool_from_row(row)
            for row in self._optional_rows("node_pools", which, *values)
        }
        return {
            row["run"]: from_row(row, idle.get(row["run"]), pools.get(row["run"]))
            for row in self._optional_rows("terms", which, *values)
        }

    def _optional_rows(self, table: str, which: str, *values: str) -> list[sqlite3.Row]:
        """Return the rows of runs in a table that not every journal has."""
        query = "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?"
        if self._base.execute(query, (table,)).fetchone() is None:
            return []
        statement = f"SELECT * FROM {table} WHERE run IN (SELECT run FROM runs {which})"  # noqa: S608 - ours
        return self._base.execute(statement, values).fetchall()

    def events(self, run: str) -> tuple[tuple[datetime, str], ...]:
        """Return what happened to a run, in order."""
        with told(self.path, "read"):
            rows = self._base.execute(
                "SELECT at, what FROM events WHERE run=? ORDER BY rowid", (run,)
            )
            return tuple((datetime.fromisoformat(row["at"]), row["what"]) for row in rows)

    @contextmanager
    def working_on(self, run: str) -> Iterator[bool]:
        """Hold the run for this process; yields False where another process holds it.

        The hold is a lock of the operating system, which a killed process cannot keep.
        """
        handle = None
        with contextlib.ExitStack() as stack:
            if self.lost:
                stack.enter_context(contextlib.suppress(RefusedError))
            handle = open_lock(self.folder, run)
        if handle is None:
            yield True
            return
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(handle)


def _key(run: str, resource: Creation | JournaledResource) -> _Key:
    return run, resource.kind, resource.name, resource.region


def _price(offer: Offer | None) -> str | None:
    return None if offer is None else offer_to_text(offer)


def _time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


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


_TEXTS = ("provider", "region", "instance_type", "gpu", "purchase", "source")
_NUMBERS = ("gpu_count", "gpu_memory_gib", "vcpus", "ram_gib", "scratch_disk_gib")


def offer_to_text(offer: Offer) -> str:
    """Return what bills and tables need of an offer, as JSON; money is text."""
    values: dict[str, object] = {name: getattr(offer, name) for name in (*_TEXTS, *_NUMBERS)}
    values |= {"usd_per_hour": plain(offer.usd_per_hour), "as_of": offer.as_of.isoformat()}
    return json.dumps(values | {"dated": offer.dated})


def offer_from_text(text: str) -> Offer:
    """Return the offer that `offer_to_text` wrote."""
    values = json.loads(text)
    price, day = usd(values.pop("usd_per_hour")), date.fromisoformat(values.pop("as_of"))
    return Offer(usd_per_hour=price, as_of=day, **values)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def resource_from_row(row: sqlite3.Row) -> JournaledResource:
    """Return a resource of a run."""
    return JournaledResource(
        kind=row["kind"],
        name=row["name"],
        region=row["region"],
        id=row["id"],
        state=row["state"],
        intended_at=datetime.fromisoformat(row["intended_at"]),
        billed_from=_time(row["billed_from"]),
        billed_until=_time(row["billed_until"]),
        address=row["address"],
    )


def run_from_row(
    row: sqlite3.Row, resources: tuple[JournaledResource, ...], agreed: Terms | None
) -> Deployment:
    """Return a run with its resources, and what its launch was confirmed with."""
    predicted = row["predicted_usd"]
    return Deployment(
        marks=OwnershipTags(
            run=row["run"],
            deadline=datetime.fromisoformat(row["deadline"]),
            owner=row["owner"],
            plan=row["plan"],
        ),
        provider=row["provider"],
        offer=None if row["offer"] is None else offer_from_text(row["offer"]),
        region=row["region"],
        count=row["count"],
        state=row["state"],
        started_at=datetime.fromisoformat(row["started_at"]),
        ended_at=_time(row["ended_at"]),
        predicted_usd=None if predicted is None else Decimal(predicted),
        resources=resources,
        reason=row["reason"],
        account=row["account"],
        terms=agreed,
    )
