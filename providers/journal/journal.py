"""The journal: what was meant to be made, what was made, what is gone. SQLite, each write synced.

An intent is written before the call that makes a resource and its result after it, so whatever a
crash leaves behind is named here. The journal is a record and no authority: what exists is what the
provider lists with our marks, and `providers.lifecycle.reap` works with an empty one.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec

from pricing.catalog.offer import Offer
from pricing.errors import InputError, RefusedError
from providers.interface import (
    Creation,
    Deployment,
    JournaledResource,
    LaunchSpec,
    Resource,
    Terms,
    as_kept,
)
from providers.journal.journal_file import (
    BUSY_AGAIN_MS,
    FILE,
    DamagedJournalError,
    HeldJournalError,
    JournalError,
    explained_errors,
    memory_base,
    open_base,
    open_lock,
    set_aside,
)
from providers.journal.ledger import price_within, usd_for
from providers.redaction import redact

__all__ = ("FILE", "Journal", "JournalError", "set_aside")

_DECODER = msgspec.json.Decoder(Deployment)


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
            with explained_errors(self.path, "written"):
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
        run = Deployment(
            marks=spec.marks,
            provider=spec.provider,
            offer=first.offer,
            region=first.region,
            count=spec.count,
            state="launching",
            started_at=at,
            ended_at=None,
            predicted_usd=predicted_usd,
            account=account,
            terms=terms_of(spec),
        )
        self._add(run, f"launch of {spec.count} x {first.text}")

    def adopt_run(self, run: Deployment) -> None:
        """Write down a run that the provider knows and the journal does not."""
        self._add(run, "adopted: found at the provider by its marks")

    def extend_run(
        self,
        run: str,
        deadline: datetime,
        usd: Decimal | None,
        max_usd: Decimal | None,
        at: datetime,
    ) -> None:
        """Write down a later deadline, the total by then, and the cap that was named for it."""

        def extended(deployment: Deployment) -> Deployment:
            terms = deployment.terms
            if terms is not None and max_usd is not None:
                terms = replace(terms, max_usd=max_usd)
            marks = replace(deployment.marks, deadline=deadline)
            return replace(deployment, marks=marks, predicted_usd=usd, terms=terms)

        self._change(run, at, f"extended: ends at {deadline:%Y-%m-%d %H:%M:%S} UTC", extended)

    def place_run(self, run: str, region: str, offer: Offer | None) -> None:
        """Write down where the run is tried next."""
        self._change(
            run, None, "", lambda deployment: replace(deployment, region=region, offer=offer)
        )

    def mark_run(self, run: str, state: str, at: datetime, reason: str = "") -> None:
        """Write down how far the run is; with "ended" also when."""

        def marked(deployment: Deployment) -> Deployment:
            ended_at = deployment.ended_at or (at if state == "ended" else None)
            return replace(
                deployment, state=state, ended_at=ended_at, reason=reason or deployment.reason
            )

        self._change(run, at, f"{state}{': ' if reason else ''}{reason}", marked)

    def intend(self, run: str, creation: Creation, at: datetime) -> None:
        """Write down that a resource is about to be made.

        One of that name that was made before and is gone, at another place, keeps its own line:
        it has a bill.
        """
        intent = JournaledResource(
            kind=creation.kind,
            name=creation.name,
            region=creation.region,
            id="",
            state="intended",
            intended_at=at,
        )
        self._change(
            run,
            at,
            f"about to make {creation.kind} {creation.name}",
            lambda deployment: replace(deployment, resources=(*deployment.resources, intent)),
        )

    def record(self, resource: Resource, at: datetime) -> None:
        """Write down that a resource was made, or was found: in the line of its id or intent.

        Where the provider does not tell when a machine was made, its bill begins with the intent,
        else with its launch: never too late.
        """

        def recorded(deployment: Deployment) -> Deployment:
            lines = [
                o for o in deployment.resources if (o.kind, o.id) == (resource.kind, resource.id)
            ]
            lines = lines or [
                o for o in deployment.resources if o.state == "intended" and _is(o, new)
            ]
            kept_lines = tuple(o for o in deployment.resources if o not in lines[1:])
            if not lines:
                return replace(deployment, resources=(*kept_lines, new))
            begun = lines[0].billed_from or resource.created_at
            line = replace(
                lines[0],
                id=resource.id,
                state="made",
                billed_until=None,
                address=resource.address,
                billed_from=begun or (lines[0].intended_at if resource.is_machine else None),
            )
            return replace(
                deployment, resources=tuple(line if o is lines[0] else o for o in kept_lines)
            )

        launched = resource.marks.started or at
        billed_from = resource.created_at or (launched if resource.is_machine else None)
        new = replace(as_kept(resource, at), intended_at=at, billed_from=billed_from)
        event = f"{resource.kind} {resource.name} is {resource.id}"
        self._change(resource.marks.run, at, event, recorded)

    def refuse(self, run: str, creation: Creation, at: datetime, why: str) -> None:
        """Write down that the provider refused, so that there is nothing of that intent."""

        def refused(line: JournaledResource) -> JournaledResource:
            is_meant = _is(line, creation) and not line.id and line.state == "intended"
            return replace(line, state="refused") if is_meant else line

        self._change_lines(run, at, f"refused {creation.name}: {why}", refused)

    def mark_gone(self, run: str, entry: JournaledResource, at: datetime) -> None:
        """Write down that the provider said that a resource is gone; a machine's bill ends."""

        def ended(line: JournaledResource) -> JournaledResource:
            is_meant = _is(line, entry) and line.id == entry.id
            if not (is_meant and line.state in ("intended", "made")):
                return line
            until = line.billed_until or (at if line.billed_from is not None else None)
            return replace(line, state="gone", billed_until=until)

        self._change_lines(run, at, f"{entry.kind} {entry.name} is gone", ended)

    def _change_lines(
        self,
        run: str,
        at: datetime,
        event: str,
        changed: Callable[[JournaledResource], JournaledResource],
    ) -> None:
        def all_changed(deployment: Deployment) -> Deployment:
            return replace(deployment, resources=tuple(map(changed, deployment.resources)))

        self._change(run, at, event, all_changed)

    def note(self, run: str, at: datetime, event: str) -> None:
        """Write down what happened to a run."""
        with self._writing():
            self._event(run, at, event)

    def _event(self, run: str, at: datetime, event: str) -> None:
        values = (run, at.astimezone(UTC).isoformat(), redact(event))
        self._base.execute("INSERT INTO events VALUES (?, ?, ?)", values)

    def _add(self, run: Deployment, event: str) -> None:
        with self._writing():
            values = (run.marks.run, run.state, run.started_at.isoformat(), _text(run))
            self._base.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", values)
            self._event(run.marks.run, run.started_at, event)

    def _change(
        self, run: str, at: datetime | None, event: str, changed: Callable[[Deployment], Deployment]
    ) -> None:
        """Write a run anew, and what happened to it; one that is not there has events alone."""
        with self._writing():
            deployment = self.deployment(run)
            if deployment is not None:
                new = changed(deployment)
                self._base.execute(
                    "UPDATE runs SET state=?, document=? WHERE run=?", (new.state, _text(new), run)
                )
            if at is not None:
                self._event(run, at, event)

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
        """Return the runs of a WHERE clause of ours."""
        statement = f"SELECT document FROM runs {which} ORDER BY started_at, run"  # noqa: S608 - ours
        with explained_errors(self.path, "read"):
            rows = self._base.execute(statement, values).fetchall()
        try:
            return tuple(_DECODER.decode(document) for (document,) in rows)
        except (msgspec.MsgspecError, InputError) as error:
            raise DamagedJournalError(
                f"{self.path}: the journal is damaged: a line cannot be read ({error}). "
                "`gpucost reap` works without it and sets it aside."
            ) from error

    def events(self, run: str) -> tuple[tuple[datetime, str], ...]:
        """Return what happened to a run, in order."""
        statement = "SELECT at, what FROM events WHERE run=? ORDER BY rowid"
        with explained_errors(self.path, "read"):
            rows = self._base.execute(statement, (run,)).fetchall()
        return tuple((datetime.fromisoformat(at), event) for at, event in rows)

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


def _is(line: JournaledResource, resource: Creation | JournaledResource) -> bool:
    return (line.kind, line.name, line.region) == (resource.kind, resource.name, resource.region)


def _text(run: Deployment) -> str:
    """Return a run as JSON; no secret gets into the file."""
    return redact(msgspec.json.encode(run).decode())


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
