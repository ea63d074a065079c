"""A fleet's table on PostgreSQL and in Parquet: `python benchmarks/second_engine.py FILE ADDRESS`.

FILE is Parquet (large_sources.py tells of what form), ADDRESS is postgres://HOST:PORT/DATABASE#TABLE
with the same rows, on this machine; GPUCOST_WAREHOUSE_USER may read it. Prints for each what the
profiles cost: seconds of CPU and most memory of gpucost's process and of the server's, and whether
they are the same bytes. Nothing is judged.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from planner.profile.codec import dump
from telemetry.lake.place import PASSWORD, USER, place_of
from telemetry.lake.profiles import profiles_of_place
from telemetry.readers.hints import Hints

if TYPE_CHECKING:
    from planner.profile.model import Profile

_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _CHILD_STIME = 11, 15  # fields of /proc/PID/stat behind the name


def profiles(source: str) -> tuple[float, int, dict[str, str]]:
    """Return seconds of CPU, MiB, and of each profile its hash but for the table's name."""
    begun = time.process_time()
    place = place_of(source)
    if place is None:
        raise SystemExit(f"{source}: no table.")
    who = {name: os.environ.get(name) for name in (USER, PASSWORD)}
    found = profiles_of_place(place, who, Hints())
    spent = time.process_time() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    texts = {one.job.name: dump((_nameless(one, place.name),)) for one in found}
    return spent, most, {k: hashlib.sha256(v.encode()).hexdigest() for k, v in texts.items()}


def _nameless(profile: Profile, table: str) -> Profile:
    told = profile.provenance
    sources = tuple(replace(one, path="") for one in told.sources)
    notes = tuple(note.replace(f"{table}: ", "") for note in told.notes)
    return replace(profile, provenance=replace(told, sources=sources, notes=notes))


class Server:
    """The processes of a PostgreSQL on this machine, looked at twice a second."""

    def __init__(self) -> None:
        """Find the server by its name."""
        servers = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/comm")
            if path.read_text(encoding="ascii").strip() == "postgres"
        ]
        self._pid = min(servers)
        self._at_first = self._cpu_s()
        self.most_mib = 0
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()

    def stop(self) -> float:
        """Return the seconds of CPU of the processes that have ended since."""
        time.sleep(1)
        self._done.set()
        self._watch.join()
        return self._cpu_s() - self._at_first

    def _cpu_s(self) -> float:
        stat = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        return sum(map(int, stat.split()[_UTIME : _CHILD_STIME + 1])) / _TICKS

    def _look(self) -> None:
        while not self._done.wait(0.5):
            now = 0
            for child in Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split():
                try:
                    lines = Path(f"/proc/{child}/status").read_text(encoding="ascii").splitlines()
                except OSError:
                    continue
                now += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.most_mib = max(self.most_mib, now >> 10)


def main() -> None:
    """Read both, each in a process of its own."""
    file, address = sys.argv[1:3]
    found = []
    for source in (file, address):
        server = Server()
        begun = time.monotonic()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            spent, most, hashes = pool.submit(profiles, source).result()
        wall = time.monotonic() - begun
        of_server = server.stop()
        print(
            f"{source}: {len(hashes)} profiles, {spent:.1f} s of CPU and {most} MiB here, "
            f"{of_server:.1f} s and {server.most_mib} MiB in the server, {wall:.0f} s",
            flush=True,
        )
        found.append(hashes)
    other = sum(found[0][name] != found[1].get(name) for name in found[0])
    print(f"{other} of {len(found[0])} profiles differ")


if __name__ == "__main__":
    main()
