"""The event file of one process: one JSON object a line, one write a line."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


APPLY = "apply.json"  # in the folder of events, where a recipe is to be applied


def wall(moment_s: float) -> float:
    """Return a moment of time.perf_counter() as seconds since 1970."""
    return time.time() - (time.perf_counter() - moment_s)


class Events:
    """Writes events, or nothing at all once the disk has refused one.

    The file is made at the first event that says hello, so launchers and loader workers make none.
    A line is on its way to the disk when `write` returns: killing the process loses no line that
    was written.

    Attributes:
        flush: called before an event is written and at the end, for lines that are held back.
        finish: called at the end; returns the fields of `bye`.
        greet: called once hello was said.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        self._quiet = False
        self._ended = False
        self._oddities: list[str] = []
        self.flush: Callable[[], None] = lambda: None
        self.finish: Callable[[], dict[str, object]] = dict
        self.greet: Callable[[], None] = lambda: None

    @property
    def greeted(self) -> bool:
        """Whether hello has been said, or never will be."""
        return self._quiet or self._file is not None

    def hello(self, framework: str, version: str | None = None) -> None:
        """Open the file and write who is speaking, unless that was done.

        Args:
            framework: by whose steps the program is known.
            version: of it; None reads it from the module.
        """
        if self.greeted:
            return
        if version is None:
            module = sys.modules.get("torch" if framework == "pytorch" else framework)
            version = str(getattr(module, "__version__", ""))
        name = "%d-%d.jsonl" % (os.getpid(), time.time_ns())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            self._file = os.open(os.path.join(self._folder, name), flags, 0o666)
            state = os.fstat(self._file)
        except OSError:
            self._quiet = True
            return
        self._identity = (state.st_dev, state.st_ino)
        self.write(
            "hello",
            pid=os.getpid(),
            ppid=os.getppid(),
            framework=framework,
            version=version,
            python="%d.%d.%d" % sys.version_info[:3],
            script=os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "",
        )
        self._at_end()
        odd, self._oddities = self._oddities, []
        for sentence in odd:
            self.odd(sentence)
        self.greet()

    def write(self, event: str, t_s: float | None = None, **fields: object) -> None:
        """Write one event, after what was held back.

        Args:
            event: its kind.
            t_s: seconds since 1970; now when left out.
            fields: what JSON can hold.
        """
        if self._file is None:
            return
        self.flush()
        line = {"event": event, "t_s": round(time.time() if t_s is None else t_s, 6)}
        line.update(fields)
        self.line(json.dumps(line))

    def odd(self, sentence: str) -> None:
        """Say that a hook stepped aside; kept until hello where that was not said yet."""
        if self._file is None:
            self._oddities.append(sentence[:500])
        else:
            self.write("odd", what=sentence[:500])

    def line(self, text: str) -> None:
        """Write one line at once; after the first that fails or is cut short, nothing more."""
        if self._file is None:
            return
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        try:
            state = os.fstat(self._file)
            if (state.st_dev, state.st_ino) != self._identity:
                # The program closed all files, as daemons do: the number is another file now.
                self._file, self._quiet = None, True
                return
            written = os.write(self._file, data)
        except OSError:
            written = -1
        if written != len(data):
            self.forget()

    def forget(self) -> None:
        """Close the file without a word, for good."""
        file, self._file, self._quiet = self._file, None, True
        self.flush, self.finish = lambda: None, dict
        if file is not None:
            try:
                os.close(file)
            except OSError:
                pass

    def bye(self) -> None:
        """Write what was held back and that the process ends as it should."""
        if self._ended:
            return
        self._ended = True
        try:
            self.write("bye", None, **self.finish())
        except Exception:
            pass

    def _at_end(self) -> None:
        """Have `bye` called at the end of a program and of a child of multiprocessing alike."""
        atexit.register(self.bye)
        processes = sys.modules.get("multiprocessing.util")
        if processes is not None:
            processes.Finalize(None, self.bye, exitpriority=1000)
