"""The watch on a machine: it ends the machine whatever the clock, the disk or a reboot does."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from templates.bootstrap_deadline import END_S, WATCH
from tests.bootstrap.box import BOOT_S, NOW_S, Box
from tests.bootstrap.machines import a_machine

TOKEN = "dop_v1_" + "4ea9e4" * 8
HOUR_S = 3600
DEADLINE_S = NOW_S + HOUR_S
_SHORT: dict[str, Any] = {"deadline": datetime(2026, 11, 21, 13, 15, tzinfo=UTC), "ttl_s": HOUR_S}
_ANSWERS = 'case "$*" in *169.254*) echo 4711 ;; *) echo "$CODE" ;; esac'


def a_box(root: Path, end: str = "poweroff", left_s: int = HOUR_S - BOOT_S - 20) -> Box:
    """A machine with an hour to live that is ready, so long before its end."""
    box = Box(root, a_machine(end=end, **_SHORT), curl=_ANSWERS)
    box.write("var/lib/gpucost/status", "ready\n")
    box.set_clock(DEADLINE_S - left_s, up_s=HOUR_S - BOOT_S - left_s)
    return box


def ended_s(box: Box) -> int:
    """When, by its clock, the machine was first asked to end."""
    (line,) = [line for line in box.calls.splitlines() if "ends now" in line]
    return int(line.split()[2].rstrip(":"))


def test_it_ends_at_the_deadline(tmp_path: Path) -> None:
    """Within ten seconds of the deadline the machine powers off, and harder until it is gone."""
    box = a_box(tmp_path, left_s=100)
    box.watch(until_s=HOUR_S + 400)
    assert 0 <= ended_s(box) - DEADLINE_S <= WATCH["tick_s"]
    asked = [line for line in box.calls.splitlines() if "poweroff" in line]
    assert asked[0] == "systemctl poweroff"
    assert asked[-2:] == ["systemctl poweroff --force", "systemctl poweroff --force --force"]
    assert box.read("proc/sysrq-trigger") == "o\n"
    assert END_S["poweroff"] == WATCH["tick_s"] + WATCH["retry_s"] * len(asked)


def test_nothing_that_ends_it_takes_longer_than_was_billed(tmp_path: Path) -> None:
    """A look, the machine's own id and the API's answer have limits that the cap counts in."""
    box = a_box(tmp_path, end="api")
    limits = [int(n) for n in re.findall(r"--max-time (\d+)", box.read("opt/gpucost/end.sh"))]
    (tick_s,) = re.findall(r"sleep (\d+)", box.read("opt/gpucost/deadline.sh"))
    assert sum(limits) + int(tick_s) == END_S["api"]


def test_it_warns_before(tmp_path: Path) -> None:
    """Everybody who is logged in is told half an hour, ten minutes and two minutes before, once."""
    box = a_box(tmp_path, left_s=1850)
    box.watch(until_s=HOUR_S + 100)
    told = [line for line in box.calls.splitlines() if "save what you need" in line]
    assert [line.rpartition(" in ")[2].partition(";")[0] for line in told] == [
        "30 minutes",
        "10 minutes",
        "2 minutes",
    ]


@pytest.mark.parametrize("jump_s", [3 * HOUR_S, -3 * HOUR_S], ids=["ahead", "behind"])
def test_a_clock_that_jumps_and_stays(tmp_path: Path, jump_s: int) -> None:
    """A clock behind changes nothing, since life is counted too; one ahead ends after a minute."""
    box = a_box(tmp_path)
    up_s = 20 if jump_s > 0 else HOUR_S - 100
    box.set_clock(NOW_S + BOOT_S + up_s + jump_s, up_s=up_s)
    box.watch(until_s=HOUR_S + 100)
    lived_s = ended_s(box) - NOW_S - BOOT_S - jump_s
    assert (60 <= lived_s <= 120) if jump_s > 0 else (HOUR_S <= lived_s <= HOUR_S + 10)


def test_a_clock_that_is_set_right_ends_nothing(tmp_path: Path) -> None:
    """Three hours ahead for the first half minute of a boot is a wrong clock, not a deadline."""
    box = a_box(tmp_path)
    box.set_clock(NOW_S + BOOT_S + 3 * HOUR_S, up_s=20)
    box.watch(until_s=50)
    box.set_clock(NOW_S + BOOT_S + 50, up_s=50)
    box.watch(until_s=600)
    assert "ends now" not in box.calls


def test_a_reboot_forgets_nothing(tmp_path: Path) -> None:
    """With a clock that stands behind, the life of earlier boots counts, to a minute."""
    box = a_box(tmp_path)
    box.set_clock(NOW_S - 5 * HOUR_S, up_s=HOUR_S // 2 - 100)
    box.watch(until_s=HOUR_S // 2)
    box.reboot()
    again_s = box.now_s - box.up_s
    box.set_clock(box.now_s + 1600, up_s=1620)
    box.watch(until_s=HOUR_S)
    assert HOUR_S // 2 - 10 <= ended_s(box) - again_s <= HOUR_S // 2 + 70


def test_a_moved_deadline_holds_and_survives_a_reboot(tmp_path: Path) -> None:
    """What was moved by an hour is an hour later, is warned of again, and stays after a boot."""
    box = a_box(tmp_path)
    box.set_clock(DEADLINE_S - 200, up_s=HOUR_S - BOOT_S - 200)
    box.watch(until_s=HOUR_S - 200)
    box.write("etc/gpucost/deadline", f"k3f9xw2m {DEADLINE_S + HOUR_S} {2 * HOUR_S}\n")
    box.reboot(down_s=0)
    box.set_clock(DEADLINE_S + HOUR_S - 1000, up_s=HOUR_S - 1000)
    assert str(DEADLINE_S + HOUR_S) in box.read("etc/gpucost/deadline")
    box.watch(until_s=2 * HOUR_S)
    assert 0 <= ended_s(box) - DEADLINE_S - HOUR_S <= 10
    assert box.calls.count("save what you need") == 4


@pytest.mark.parametrize("text", ["", "nonsense", "k3f9xw2m - -", "other 99999999999 99999999"])
def test_a_damaged_deadline_is_that_of_the_launch(tmp_path: Path, text: str) -> None:
    """A file that is empty, damaged or of another run moves nothing."""
    box = a_box(tmp_path, left_s=100)
    box.write("etc/gpucost/deadline", text)
    box.watch(until_s=HOUR_S + 100)
    assert 0 <= ended_s(box) - DEADLINE_S <= 10


def test_a_full_disk_ends_all_the_same(tmp_path: Path) -> None:
    """Where nothing can be written the machine still ends."""
    box = a_box(tmp_path, left_s=100)
    state = tmp_path / "var/lib/gpucost"
    (state / "lived.new").mkdir()  # root may write anywhere but into a folder's name
    (state / "end.log").mkdir()
    box.watch(until_s=HOUR_S + 100)
    assert "systemctl poweroff" in box.calls


@pytest.mark.parametrize(
    ("status", "least_s", "most_s"),
    [
        ("failed: the driver shows 7 GPUs, and 8 are paid for\n", 900, 960),
        ("", 1800 + 900, 1800 + 960),
    ],
    ids=["failed", "silent"],
)
def test_a_machine_that_nobody_can_use_ends_early(
    tmp_path: Path, status: str, least_s: int, most_s: int
) -> None:
    """A bootstrap that failed or never spoke ends its machine after a grace, with nobody there."""
    box = a_box(tmp_path)
    box.write("var/lib/gpucost/status", status)
    box.set_clock(NOW_S + BOOT_S + max(20, least_s - 950), up_s=max(20, least_s - 950))
    box.watch(until_s=HOUR_S + 100)
    assert least_s <= ended_s(box) - NOW_S - BOOT_S <= most_s
    assert "touch " in box.calls


def test_a_failed_machine_can_be_kept(tmp_path: Path) -> None:
    """Who wants to look into it keeps it, until its deadline."""
    box = a_box(tmp_path)
    box.write("var/lib/gpucost/status", "failed: something\n")
    box.write("var/lib/gpucost/keep", "")
    box.watch(until_s=1200)
    assert "ends" not in box.calls


ODD = ('a"b', "a\\nb", "50%s", "$(reboot)", "--config=/x", "é".encode().decode("latin-1"))


@pytest.mark.parametrize("token", [TOKEN, *ODD])
def test_the_token_is_never_text_of_a_command(tmp_path: Path, token: str) -> None:
    """Curl reads the header from a file, as it is: no shell, no option, no list of processes."""
    box = a_box(tmp_path, "api", left_s=30)
    box.write("etc/gpucost/end.header", f"Authorization: Bearer {token}\n")
    box.watch(until_s=HOUR_S + 200)
    deletes = [line for line in box.calls.splitlines() if "--request DELETE" in line]
    assert len(deletes) >= 2  # it asks until it is gone
    assert deletes[0].endswith("https://api.digitalocean.com/v2/droplets/4711")
    assert f"--header @{tmp_path}/etc/gpucost/end.header" in deletes[0]
    assert token not in box.calls


def test_without_metadata_the_known_number_is_used(tmp_path: Path) -> None:
    """A metadata service that is down does not keep a Droplet: its number was written down."""
    box = Box(
        tmp_path, a_machine(**_SHORT), curl='case "$*" in *169.254*) exit 7 ;; *) echo 204 ;; esac'
    )
    box.write("var/lib/gpucost/status", "ready\n")
    box.write("var/lib/gpucost/id", "815\n")
    box.set_clock(DEADLINE_S - 30, up_s=HOUR_S - 60)
    box.watch(until_s=HOUR_S + 100)
    assert "/v2/droplets/815" in box.calls


def test_where_nothing_tells_a_machine_its_id_a_post_names_what_was_handed_over(
    tmp_path: Path,
) -> None:
    """The id that came with the token ends the machine, and is read with the token before."""
    at = "https://cloud.lambda.ai/api/v1"
    ends = {"end_id_url": "", "end_url": f"{at}/instances/", "end_post": f"{at}/terminate"}
    box = Box(tmp_path, a_machine(**_SHORT, **ends), curl="echo 200")
    box.write("var/lib/gpucost/id", "0920582c7ff041399e34823a0be62549\n")
    box.set_clock(DEADLINE_S - 90, up_s=HOUR_S - 120)
    box.watch(until_s=HOUR_S - 100)
    ran = box.run("armed")
    assert "machine=0920582c7ff041399e34823a0be62549\nfault=\n" in ran.stdout
    box.watch(until_s=HOUR_S + 100)
    asked = [line for line in box.calls.splitlines() if line.endswith(f"{at}/terminate")]
    assert '--data {"instance_ids": ["0920582c7ff041399e34823a0be62549"]}' in asked[0]


def test_armed_is_what_was_seen(tmp_path: Path) -> None:
    """Armed is a beat of the last minute; a watch that is dead or has never lived is not."""
    box = a_box(tmp_path)
    ran = box.run("armed")
    assert ran.returncode == 1
    assert "fault=nothing watches the deadline" in ran.stdout
    box.watch(until_s=60)
    ran = box.run("armed")
    assert ran.returncode == 0, ran.stdout
    assert f"run=k3f9xw2m\ndeadline_s={DEADLINE_S}\nttl_s={HOUR_S}\n" in ran.stdout
    assert ran.stdout.endswith("fault=\n")
    box.set_clock(NOW_S + BOOT_S + 400, up_s=400)
    assert "fault=nothing watches the deadline" in box.run("armed").stdout


@pytest.mark.parametrize(
    ("code", "fault"),
    [("200", ""), ("401", "does not reach this machine: 401"), ("404", "machine: 404")],
)
def test_a_droplet_is_armed_once_its_token_works_there(
    tmp_path: Path, code: str, fault: str
) -> None:
    """The token is tried on the machine itself; one of another account is found out."""
    box = a_box(tmp_path, "api")
    box.watch(until_s=60)
    ran = box.run("armed", CODE=code)
    assert (ran.returncode == 0) == (not fault)
    assert fault in ran.stdout
    assert "machine=4711" in ran.stdout
    assert box.run("armed", "--watch", CODE="500").returncode == 0  # only what the machine has


def test_a_bootstrap_without_a_watch_is_never_ready(tmp_path: Path) -> None:
    """An image that runs no boothook fails in words, instead of living on."""
    box = Box(tmp_path, a_machine())
    assert box.run("bootstrap.sh").returncode == 1
    assert box.status == "failed: this machine does not end itself: nothing watches the deadline"


def test_a_boothook_may_run_at_every_boot(tmp_path: Path) -> None:
    """A second boot writes the same; the deadline of another run, in a copied image, goes."""
    box = a_box(tmp_path)
    before = box.read("opt/gpucost/deadline.sh")
    box.reboot()
    assert box.read("opt/gpucost/deadline.sh") == before
    box.write("etc/gpucost/deadline", "otherrun 1 1\n")
    box.reboot()
    assert box.read("etc/gpucost/deadline") == f"k3f9xw2m {DEADLINE_S} {HOUR_S}\n"
