"""`gpucost watch`: a look that needs no shell's environment, by cron or by a systemd timer."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpucost.commands.machines.watch import Schedule, keep_environment, read_environment
from pricing.errors import InputError
from providers.journal.journal import Journal
from providers.private_files import NotOursError
from providers.registry import CLOUDS
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready
from tests.providers.fakes.account import REAPER, TOKEN, a_digitalocean
from tests.providers.fakes.digitalocean import DigitalOcean

LAUNCH = (
    "provision",
    "--type",
    "digitalocean/gpu-h100x8-640gb",
    "--ttl",
    "2h",
    "--yes",
    "--allow-stale",
    "--no-self-destroy",
    "-f",
    "json",
)


pytestmark = pytest.mark.usefixtures("login")


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Ready) -> Iterator[DigitalOcean]:
    """A DigitalOcean that sells the size."""
    assert login.delivered == []
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        for size in fake.sizes:
            if size["slug"] == "gpu-h100x8-640gb":
                size |= {"regions": ["nyc2"], "price_hourly": 35.28}
        yield fake


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl that notes what it is told; its folder is first on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "systemctl"
    script.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/systemctl.log\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "systemctl.log"


@pytest.fixture
def no_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without systemd."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.fixture
def hasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is one that never waits: between two looks at an end are real seconds."""
    program = tmp_path / "gpucost"
    program.write_text(
        f"#!{sys.executable}\n"
        "import time\n"
        "time.sleep = lambda _: None\n"
        "from gpucost.entry import main\n"
        "main()\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])


def _as_cron(line: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a crontab as cron does: its five words of time off, a bare environment."""
    command = line.strip().split(None, 5)[5].replace("\\%", "%")
    bare = {"HOME": str(home), "LOGNAME": "ada", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    words = ["/usr/bin/env", "-i", *(f"{k}={v}" for k, v in bare.items()), "/bin/sh", "-c", command]
    return subprocess.run(words, cwd=home, check=False, capture_output=True, text=True)


@pytest.mark.usefixtures("no_systemd", "hasty")
def test_the_printed_line_runs_under_cron(cloud: DigitalOcean, call: Call, tmp_path: Path) -> None:
    """It finds program and credentials, is silent while all is well, and ends what is left over."""
    launched = call(*LAUNCH)
    assert launched.code == 0, launched.err
    installed = call("watch", "--install")
    assert installed.code == 0, installed.err
    assert f" {tmp_path}/gpucost watch" in installed.out
    quiet = _as_cron(installed.out, tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert len(cloud.estate.things["droplets"]) == 1
    journal = Journal(tmp_path / "state")
    journal.mark_run(launched.json["run"], "failed", datetime.now(UTC))
    journal.close()
    ended = _as_cron(installed.out, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert launched.json["run"] in ended.stdout
    assert cloud.estate.things["droplets"] == {}


@pytest.mark.usefixtures("no_systemd", "cloud")
def test_what_is_kept_is_the_users_alone(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables lie in one file, 0600; no secret is in the line; --uninstall removes it."""
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    monkeypatch.setenv("OTHERS_PASSWORD", "of another program")
    installed = call("watch", "--install")
    file = tmp_path / "state" / "watch.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = read_environment(file)
    assert kept["DIGITALOCEAN_TOKEN"] == TOKEN
    assert "OTHERS_PASSWORD" not in kept
    assert TOKEN not in installed.out + installed.err
    assert REAPER not in installed.out + installed.err
    assert call("watch", "--uninstall").code == 0
    assert not file.exists()
    ran = call("watch", "--environment", str(file))
    assert ran.code == 2
    assert "gpucost watch --install" in ran.err


@pytest.mark.usefixtures("cloud")
def test_a_systemd_timer_is_written_and_taken_away(
    systemctl: Path, call: Call, tmp_path: Path
) -> None:
    """Two units that systemd accepts, enabled, started and asked after; all gone afterwards."""
    ran = call("watch", "--install")
    assert ran.code == 0, ran.err
    assert ran.out == ""
    units = tmp_path / "config" / "systemd" / "user"
    assert {unit.name for unit in units.iterdir()} == {
        "gpucost-watch.service",
        "gpucost-watch.timer",
    }
    assert "OnCalendar=*:0/10" in (units / "gpucost-watch.timer").read_text()
    assert TOKEN not in "".join(unit.read_text() for unit in units.iterdir())
    told = systemctl.read_text()
    assert "--user enable --now gpucost-watch.timer" in told
    assert "--user is-active --quiet gpucost-watch.timer" in told
    if shutil.which("systemd-analyze"):
        checked = subprocess.run(
            ("systemd-analyze", "verify", "--man=no", *units.iterdir()),
            check=False,
            capture_output=True,
            text=True,
        )
        assert "gpucost-watch" not in checked.stderr, checked.stderr
    assert call("watch", "--uninstall").code == 0
    assert list(units.iterdir()) == []
    assert "--user disable --now gpucost-watch.timer" in systemctl.read_text()


def test_without_credentials_nothing_is_installed(call: Call, tmp_path: Path) -> None:
    """A look that could ask nobody is refused before anything is written."""
    ran = call("watch", "--install")
    assert ran.code == 5
    assert not (tmp_path / "state" / "watch.json").exists()


def test_paths_with_letters_that_mean_something() -> None:
    """Blanks, quotes, percent and dollar signs survive cron, the shell and systemd."""
    odd = Path('/home/a b/100%/it\'s "$HOME"\\x/gpucost')
    made = Schedule(program=odd, environment=odd.with_name("watch.json"), units=Path("/units"))
    line = made.cron_line.split(None, 5)[5].replace("\\%", "%").replace("watch --quiet", "watch -q")
    shown = subprocess.run(
        ("/bin/sh", "-c", f"printf '%s\\n' {line}"), check=True, capture_output=True, text=True
    )
    assert shown.stdout.splitlines()[0] == str(odd)
    assert shown.stdout.splitlines()[-1] == str(made.environment)
    assert '"/home/a b/100%%/it\'s \\"$$HOME\\"\\\\x/gpucost"' in made.service


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "cannot be read"), ("[]", "run that again"), ('{"PATH": "/theirs"}', "run that again")],
)
def test_only_our_own_file_is_taken(text: str, told: str, tmp_path: Path) -> None:
    """A file of something else sets no variable, and neither does one that others can read."""
    file = tmp_path / "watch.json"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(InputError, match=told):
        read_environment(file)
    keep_environment(file, {"DIGITALOCEAN_TOKEN": TOKEN})
    file.chmod(0o644)
    with pytest.raises(NotOursError):
        read_environment(file)


def test_the_credentials_of_every_provider_are_kept(tmp_path: Path) -> None:
    """A look from cron can ask each provider that machines were launched at."""
    names = {one.name for provider in CLOUDS.values() for one in provider.variables}
    assert "LAMBDA_API_KEY" in names
    file = tmp_path / "watch.json"
    keep_environment(file, {**dict.fromkeys(names, "x" * 20), "EDITOR": "vi"})
    kept = read_environment(file)
    assert names <= set(kept)
    assert "EDITOR" not in kept
