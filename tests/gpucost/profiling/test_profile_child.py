"""What the job has from its caller: the same with `gpucost profile` or `run` in front of it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.gpucost.profiling.test_profile import GPUCOST
from tests.waiting import CEILING_S

# Everything that a program can find out about how it was started, written down by a shell, which
# changes nothing of it (Python would: it ignores SIGPIPE).
STATE = """\
out=$1
# In a process of its own: the pipe of $(...) would take closed descriptors of this shell meanwhile.
(for n in 0 1 2; do readlink /proc/$$/fd/$n || echo closed; done) >"$out-standard" 2>/dev/null
exec >"$out" 2>"$out-errors"
echo "== standard streams"; cat "$out-standard"; rm "$out-standard"
echo "== words"; for word; do echo "[$word]"; done
echo "== folder"; pwd -P
echo "== descriptors"; for n in /proc/$$/fd/*; do
  case ${n##*/} in 0|1|2|10) ;; *) echo "${n##*/} $(readlink "$n")";; esac; done
echo "== status"; grep -E \
 '^(Sig(Blk|Ign|Cgt)|Umask|Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Cpus_allowed_list)' \
 /proc/self/status
echo "== limits"; cat /proc/$$/limits
echo "== priority, nice, real-time priority, policy"
cut -d')' -f2 /proc/$$/stat | cut -d' ' -f17,18,39,40
echo "== foreground, the caller's session, terminal"; cut -d')' -f2 /proc/$$/stat | {
  read -r state parent group session terminal turn rest
  echo $((group == turn)) $((session == $2)) $((terminal != 0)); }
echo "== oom, slack"; cat /proc/$$/oom_score_adj /proc/$$/timerslack_ns
echo "== environment"; tr '\\0\\n' '\\n ' </proc/$$/environ | sort
"""
# What the probe adds; and `_`, in which bash names the program that it started.
OURS = ("PYTHONPATH=", "GPUCOST_PROBE_DIR=", "_=")
# On a machine that others fill the sampler may answer too late: no matter of the job's.
NO_MATTER = ("gpucost: the sampler does not answer", "gpucost: what was measured is in")
WORDS = "profile --no-gpu -q -o measured.json --"
APPLIED = "run {more} --recipe {recipe} --no-gpu --no-metadata -q -o measured.json --"
RECIPE = """{"schema": "gpucost.recipe/v1", "job": "job", "actions": [
 {"code": "dataloader-workers", "settings": {"num_workers": 2, "prefetch_factor": 2}}]}"""
# Our own Python may lie where other users cannot go.
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SYSTEM_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"{ROOT}:{sysconfig.get_path('purelib')}"
BY_SYSTEM = (
    f"env PYTHONPATH={PACKAGES} {shutil.which(SYSTEM_PYTHON, path=SYSTEM_PATH)} -m gpucost {WORDS}"
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A way of starting a job.

    Attributes:
        name: what it is.
        script: for bash; `{it}` stands where `gpucost profile` may stand, `{job}` for the job.
        needs: programs without which it cannot be tried.
    """

    name: str
    script: str
    needs: tuple[str, ...] = ()


KINDS = (
    Kind("a pipeline", "echo data | {it} {job} | cat; echo ${{PIPESTATUS[@]}}"),
    Kind(
        "a chain of exec",
        "(ulimit -n 500; ulimit -c 0; umask 027; cd /; exec env A=1 nice -n 5 sh -c "
        '\'exec {it} {job} "two words" ""\')',
    ),
    Kind("su inside", "{it} su nobody -s /bin/sh -c {quoted}", ("su",)),
    Kind(
        "another user, no rights",
        "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs {its} {job}",
        ("setpriv", SYSTEM_PYTHON),
    ),
    Kind("timeout outside", "timeout 60 {it} {job}", ("timeout",)),
    Kind("timeout inside", "{it} timeout 60 {job}", ("timeout",)),
    Kind("nohup", "nohup {it} {job} </dev/null 2>&1", ("nohup",)),
    Kind("a job in the background", "{it} {job} & wait $!; echo $?"),
    Kind(
        "make -j",
        "printf 'all:\\n\\t+{it} {job}\\n' >Makefile; make -sj3",
        ("make",),
    ),
    Kind(
        "a wrapper as conda's",
        "printf '%s\\n' '#!/bin/bash' 'export CONDA_PREFIX=/opt/env VIRTUAL_ENV=/opt/env' "
        "'export PATH=/opt/env/bin:$PATH TOKEN=hf_x=y PYTHONPATH=/opt/lib::/x' 'exec \"$@\"' >run; "
        "chmod +x run; ./run {it} {job}",
    ),
    Kind("several processes as torchrun's", "{it} {python} launch.py {job}"),
    Kind("process substitution", "{it} {job} <(echo hi) 5</dev/null 7>&1 <<<text"),
    Kind("closed descriptors", "{it} {job} <&- 2>&-"),
    Kind("ignored signals", "trap '' INT QUIT USR1 CHLD; {it} {job}"),
    Kind("no language, odd bytes", "unset LANG LC_ALL LC_CTYPE; ODD=$'\\xff\\xfe' {it} {job}"),
    Kind(
        "on a terminal, in front",
        "script -qec 'bash --norc -ic \"{it} {job}; echo \\$?\"' /dev/null </dev/null",
        ("script",),
    ),
    Kind("nothing at all", "env -i /bin/sh -c 'cd /; {it} {job}'"),
)
LAUNCH = """\
import os, subprocess, sys
ranks = []
for rank in range(3):
    words = [*sys.argv[1:]]
    words[2] += str(rank)
    ranks.append(subprocess.Popen(words, env={**os.environ, "RANK": str(rank)}))
sys.exit(max(rank.wait() for rank in ranks))
"""


def _ran(folder: Path, kind: Kind, words: str | None) -> str:
    """Run a kind of command, in a folder of its own name, and return all that was seen.

    `words` go behind `gpucost`, which stands before the job; None: nothing does.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "state.sh").write_text(STATE, encoding="utf-8")
    (folder / "launch.py").write_text(LAUNCH, encoding="utf-8")
    job = f"sh {folder}/state.sh {folder}/seen {os.getsid(0)}"
    script = kind.script.format(
        it=f"{GPUCOST} {words}" if words else "",
        its=BY_SYSTEM if words else "",
        job=job,
        quoted=shlex.quote(job),
        python=sys.executable,
    )
    environ = {**os.environ, "FOO": "1", "CUDA_VISIBLE_DEVICES": "2", "HOME": str(folder)}
    environ |= {"XDG_CONFIG_HOME": str(folder)}
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=CEILING_S,
    )
    told = f"{ran.returncode}\n{ran.stdout}{ran.stderr}"
    states = sorted(folder.glob("seen*"))
    seen = "".join(f"{p.name}\n{p.read_text(errors='surrogateescape')}" for p in states)
    assert "== environment" in seen, (told, seen)
    lines = [line for line in seen.split("\n") if not line.startswith(OURS)]
    told = "".join(
        line for line in told.splitlines(keepends=True) if not line.startswith(NO_MATTER)
    )
    return told + re.sub(
        r"(pipe|socket):\[\d+\]|/dev/pts/\d+|/dev/fd/\d+|/proc/\d+", r"\1", "\n".join(lines)
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        yield Path(outer) / "job"


def _available(kind: Kind) -> None:
    missing = [name for name in kind.needs if shutil.which(name, path=SYSTEM_PATH) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not on this machine")
    if "{its}" in kind.script and not all(map(_is_open, PACKAGES.split(":"))):
        pytest.skip("another user cannot read gpucost: its folder is a private one")


def _is_open(folder: str) -> bool:
    """Return whether every user may enter a folder, and all folders above it."""
    path = Path(folder).resolve()
    return all(place.stat().st_mode & 0o001 for place in (path, *path.parents))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_job_cannot_tell(folder: Path, kind: Kind) -> None:
    """Environment, folder, limits, descriptors, input, signals, user and outcome are the same."""
    _available(kind)
    assert _ran(folder, kind, WORDS) == _ran(folder, kind, None)


UNDER_RUN = (
    *((name, "") for name in ("a pipeline", "a chain of exec", "timeout outside")),
    *((name, "") for name in ("several processes as torchrun's", "closed descriptors")),
    *((name, "") for name in ("ignored signals", "no language, odd bytes")),
    *((name, more) for name in ("a pipeline", "on a terminal, in front") for more in ("", "--ab")),
)


@pytest.mark.parametrize(("name", "more"), dict.fromkeys(UNDER_RUN))
def test_the_job_cannot_tell_that_settings_would_be_applied(
    folder: Path, name: str, more: str
) -> None:
    """With a recipe it has the same, and so it has where settings are tried in turns."""
    kind = next(kind for kind in KINDS if kind.name == name)
    _available(kind)
    recipe = folder.parent / "recipe.json"
    recipe.write_text(RECIPE, encoding="utf-8")
    words = APPLIED.format(more=more, recipe=recipe)
    assert _ran(folder, kind, words) == _ran(folder, kind, None)
