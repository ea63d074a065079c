"""`gpucost import prometheus+http://...`: a server's metrics become the profiles of its jobs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpucost.live import live_metrics
from tests.gpucost.conftest import Call
from tests.gpucost.fake_prometheus import WORLDS, FakePrometheus, serving

END = "2026-11-20T12:00"
END_S = 1_795_176_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FakePrometheus, str]]:
    """A fake server of metrics and its address as a SOURCE; nobody waits before asking again."""
    monkeypatch.setattr(live_metrics, "_WAITS_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(live_metrics, "_WAIT_S", 0.0)
    fake = FakePrometheus()
    with serving(fake) as address:
        yield fake, address


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Let these tests reach their own server; its addresses are of this machine."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of these tests; nothing of the environment says who asks."""
    for name in ("USER", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"GPUCOST_PROMETHEUS_{name}", raising=False)
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "live"


def _profiles(folder: Path) -> dict[str, dict[str, Any]]:
    return {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.iterdir())}


def test_a_server_is_planned_as_it_is_imported(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """`plan prometheus+http://...` plans the jobs that `import` writes, at the same dollars."""
    _, address = server
    imported = call("import", address, "-o", f"{tmp_path / 'out'}/")
    assert imported.code == 0, imported.err
    plans = [call("plan", source, "-f", "json") for source in (str(tmp_path / "out"), address)]
    totals = [
        {job["name"]: job["baseline"]["cost"]["total"] for job in plan.json["jobs"]}
        for plan in plans
    ]
    assert totals[0] == totals[1]
    assert set(totals[0]) == {"serve-0", "train-0"}


def test_pods_become_jobs_with_their_machines(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path, cache: Path
) -> None:
    """A profile a pod, with its GPUs and machine; a GPU without one is told, and is in none."""
    fake, address = server
    target = f"{tmp_path / 'out'}/"
    done = call("import", address, "--until", END, "--since", "2d", "--match", "a=b", "-o", target)
    assert done.code == 0, done.err
    assert "1 GPUs carry no job label" in done.err
    found = _profiles(tmp_path / "out")
    assert {name: len(one["gpus"]) for name, one in found.items()} == {"serve-0": 1, "train-0": 2}
    train = found["train-0"]
    assert train["window"]["duration_s"] == pytest.approx(2 * 86400 + 60)
    assert train["gpus"][1]["metrics"]["util.kernel_time"]["mean"] == pytest.approx(0.81)
    assert train["hardware"]["machine"] != found["serve-0"]["hardware"]["machine"]
    ranges = fake.ranges
    assert {one["query"] for one in ranges} == {
        'last_over_time(DCGM_FI_DEV_GPU_UTIL{a="b"}[59999ms])',
        'last_over_time(DCGM_FI_DEV_POWER_USAGE{a="b"}[59999ms])',
    }
    assert max(int(one["end"]) - int(one["start"]) for one in ranges) < 8 * 3600
    assert max(int(one["end"]) for one in ranges) == END_S
    assert not list(cache.iterdir())


def test_the_same_question_gives_the_same_bytes(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """Two imports of one window write the same files."""
    _, address = server
    for name in ("a", "b"):
        done = call("import", address, "--until", END, "-o", f"{tmp_path / name}/")
        assert done.code == 0, done.err
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_what_has_come_is_not_asked_again(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """A server that fails midway is exit 5; the same command goes on from there."""
    fake, address = server
    arguments = ("import", address, "--until", END, "--since", "3d", "-o", f"{tmp_path / 'out'}/")
    fake.break_after = 7
    failed = call(*arguments)
    assert failed.code == 5
    assert "parse error" in failed.err
    assert not (tmp_path / "out").exists()
    before = len(fake.ranges)
    fake.break_after = 1 << 30
    assert call(*arguments).code == 0
    asked = [json.dumps(fields) for fields in fake.ranges]
    assert before <= 9
    assert 1 <= len(asked) - len(set(asked)) <= 2  # the one that failed, and the one beside it
    whole = call(*arguments[:-1], f"{tmp_path / 'again'}/")
    assert whole.code == 0
    assert _profiles(tmp_path / "again") == _profiles(tmp_path / "out")


def test_another_label_may_name_the_job(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """`--job-label` takes the place of the pod's; series without it are of no job."""
    _, address = server
    out = f"{tmp_path / 'out'}/"
    done = call("import", address, "--until", END, "--job-label", "project", "-o", out)
    assert done.code == 0, done.err
    assert {name: len(p["gpus"]) for name, p in _profiles(tmp_path / "out").items()} == {"p": 3}


WHO = {
    "Bearer t0p": {"TOKEN": "t0p"},
    "Basic dTpw": {"USER": "u", "PASSWORD": "p"},
    None: {},
}


@pytest.mark.parametrize("header", WHO)
def test_who_asks_comes_from_the_environment(
    header: str | None,
    call: Call,
    server: tuple[FakePrometheus, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token or a user with a password are sent; they are in no file and on no screen."""
    fake, address = server
    for name, text in WHO[header].items():
        monkeypatch.setenv(f"GPUCOST_PROMETHEUS_{name}", text)
    done = call("import", address, "--until", END, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 0, done.err
    assert fake.headers.get("Authorization") == header
    assert "t0p" not in done.err + done.out
    assert not any(b"t0p" in file.read_bytes() for file in (tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("prometheus+http://u:secret@h:9",), "GPUCOST_PROMETHEUS_PASSWORD"),
        (("prometheus+http://",), "not an address"),
        (("ADDRESS", "--match", "nothing"), "LABEL=VALUE"),
        (("ADDRESS", "--job", "nobody"), "serve-0, train-0"),
        (("ADDRESS", "--name", "x"), "cannot share"),
        (("ADDRESS", "--since", "10s"), "--since"),
    ],
)
def test_wrong_questions_are_refused(
    arguments: tuple[str, ...],
    says: str,
    call: Call,
    server: tuple[FakePrometheus, str],
) -> None:
    """What cannot be asked or told apart is exit 2; a password is never repeated."""
    words = [server[1] if word == "ADDRESS" else word for word in arguments]
    done = call("import", *words, "--until", END, "-o", "out/")
    assert done.code == 2
    assert says in done.err
    assert "secret" not in done.err


@pytest.mark.parametrize(
    ("status", "says"), [(401, "GPUCOST_PROMETHEUS_TOKEN"), (422, "answered 422")]
)
def test_a_server_that_refuses_is_exit_5(
    status: int, says: str, call: Call, server: tuple[FakePrometheus, str]
) -> None:
    """Its own words are passed on, or what to set."""
    fake, address = server
    fake.break_after, fake.status = 0, status
    done = call("import", address, "--until", END)
    assert done.code == 5
    assert says in done.err


WHOLE = ("--until", END, "--since", "2d")


@pytest.mark.parametrize("world", WORLDS)
def test_faults_that_pass_change_nothing(
    world: str, call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """An answer that fails, is cut off or is partial is asked for again; the files are the same."""
    fake, address = server
    good = call("import", address, *WHOLE, "-o", f"{tmp_path / 'good'}/")
    assert good.code == 0, good.err
    calm = len(fake.ranges)
    fake.world = world
    done = call("import", address, *WHOLE, "-o", f"{tmp_path / 'bad'}/")
    assert done.code == 0, done.err
    assert len(fake.ranges) - calm > calm
    assert _bytes(tmp_path / "bad") == _bytes(tmp_path / "good")


def _bytes(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("world", ["partial", "cut-json", "failing", "restarting"])
def test_faults_that_stay_are_exit_5(
    world: str, call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """Nothing is made of half the data, and the sentence names the server."""
    fake, address = server
    fake.world = f"always-{world}"
    done = call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 5
    assert "127.0.0.1" in done.err
    assert not (tmp_path / "out").exists()


def test_what_a_server_warns_of_is_in_the_profile(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """A warning beside the data is a note, also where the answer had been kept."""
    fake, address = server
    fake.warnings = ["one store did not answer"]
    fake.break_after = 2
    assert call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/").code == 5
    fake.break_after, fake.warnings = 1 << 30, []
    done = call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 0, done.err
    assert "the server warned: one store did not answer" in done.err


@pytest.mark.parametrize("gap", ["", " "])
def test_points_that_are_no_numbers_are_counted(
    gap: str, call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """NaN, Inf and DCGM's blank are left out of the figures and named in the profile."""
    fake, address = server
    fake.odd, fake.spaced = {3: "NaN", 4: "+Inf", 5: "9223372036854775792"}, bool(gap)
    done = call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 0, done.err
    train = _profiles(tmp_path / "out")["train-0"]
    dropped = train["provenance"]["sources"][0]["dropped"]
    tally = (len(range(0, 2 * 1440 + 1, 100)), 2 * 2)  # of each series, and series
    assert dropped["DCGM blank value"] == pytest.approx(tally[0] * tally[1], abs=4)
    assert dropped["point that is not a number"] == pytest.approx(2 * tally[0] * tally[1], abs=8)
    assert train["gpus"][0]["metrics"]["util.kernel_time"]["max"] == pytest.approx(0.8)


def test_times_that_were_not_asked_for_are_refused(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """A server that answers for other instants than asked is exit 5."""
    fake, address = server
    fake.shift_s = 7.5
    done = call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 5
    assert "times are not those asked for" in done.err


KUBE = [
    {"exported_namespace": "a", "exported_pod": "train-0", "label_team": "vision"},
    {"exported_namespace": "other", "exported_pod": "train-0", "label_team": "wrong"},
    {"namespace": "b", "pod": "serve-0", "label_team": "search", "label_owner": "ada"},
]


def test_jobs_and_teams_come_from_the_labels_of_pods(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """`kube_pod_labels` names job, team and owner; a pod of another namespace is another pod."""
    fake, address = server
    job = {"label_batch_kubernetes_io_job_name": "resnet"}
    fake.kube = [{**KUBE[0], **job}, *KUBE[1:]]
    done = call("import", address, *WHOLE, "--match", "Hostname=~node.*", "-o", f"{tmp_path}/o/")
    assert done.code == 0, done.err
    found = _profiles(tmp_path / "o")
    assert {name: one["job"].get("team") for name, one in found.items()} == {
        "resnet": "vision",
        "serve-0": "search",
    }
    assert found["serve-0"]["job"]["owner"] == "ada"
    asked = [fields["match[]"] for path, fields in fake.asked if path.endswith("/series")]
    assert asked == ['kube_pod_labels{exported_pod=~"serve-0|train-0"}']


def test_a_label_that_changed_is_nobodys(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """A pod of two teams in the window is of neither, but of its namespace's; the rest is kept."""
    fake, address = server
    fake.kube = [{**KUBE[2], "label_team": "other"}, KUBE[2]]
    assert call("import", address, *WHOLE, "-o", f"{tmp_path}/o/").code == 0
    serve = _profiles(tmp_path / "o")["serve-0"]["job"]
    assert (serve.get("team"), serve["owner"]) == ("b", "ada")


def test_a_matcher_leaves_out_pods_of_another_cluster(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """Labels of a pod that contradict --match are of another cluster's pod."""
    fake, address = server
    fake.kube = [{**KUBE[2], "cluster": "b"}, {**KUBE[0], "cluster": "a"}]
    done = call("import", address, *WHOLE, "--match", "cluster=a", "-o", f"{tmp_path}/o/")
    assert done.code == 0, done.err
    found = {name: one["job"].get("team") for name, one in _profiles(tmp_path / "o").items()}
    assert found == {"serve-0": "b", "train-0": "vision"}  # b: its own namespace


def test_pods_of_one_name_in_two_namespaces_are_two_jobs(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """A pod named like one of another namespace is never counted with it."""
    fake, address = server
    fake.series[2]["exported_pod"] = "train-0"
    assert call("import", address, *WHOLE, "-o", f"{tmp_path}/o/").code == 0
    found = _profiles(tmp_path / "o")
    assert {one["job"]["name"]: len(one["gpus"]) for one in found.values()} == {
        "a/train-0": 2,
        "b/train-0": 1,
    }


def test_a_label_of_the_pod_may_name_the_job(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """`--job-label` also reads the pod's own labels, by the name that Kubernetes has for them."""
    fake, address = server
    fake.kube = [{**one, "label_example_com_run": "r7"} for one in KUBE]
    done = call("import", address, *WHOLE, "--job-label", "example.com/run", "-o", f"{tmp_path}/o/")
    assert done.code == 0, done.err
    assert {name: len(one["gpus"]) for name, one in _profiles(tmp_path / "o").items()} == {"r7": 3}


def test_a_kept_answer_that_was_damaged_is_asked_again(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path, cache: Path
) -> None:
    """A part that a full disk cut off is not believed."""
    fake, address = server
    assert call("import", address, *WHOLE, "-o", f"{tmp_path / 'good'}/").code == 0
    fake.break_after = 4
    assert call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/").code == 5
    kept = sorted(cache.rglob("*.part"))
    kept[0].write_bytes(kept[0].read_bytes()[:-3])
    kept[1].write_bytes(b"")
    fake.break_after = 1 << 30
    done = call("import", address, *WHOLE, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 0, done.err
    assert _bytes(tmp_path / "out") == _bytes(tmp_path / "good")


def test_what_rules_noted_is_asked_for_alone(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """`--recorded` asks for the rules' series five minutes apart, and the profile says so."""
    fake, address = server
    without = call("import", address, *WHOLE, "--recorded", "-o", f"{tmp_path}/o/")
    assert without.code == 2
    assert "--recording-rules" in without.err
    fake.noted = True
    done = call("import", address, *WHOLE, "--recorded", "-o", f"{tmp_path}/o/")
    assert done.code == 0, done.err
    assert all(one["query"].startswith("last_over_time(gpucost:DCGM") for one in fake.ranges)
    assert {one["step"] for one in fake.ranges} == {"300"}
    train = _profiles(tmp_path / "o")["train-0"]
    assert train["gpus"][1]["metrics"]["util.kernel_time"]["mean"] == pytest.approx(0.81)
    assert any("Peaks of load" in note for note in train["provenance"]["notes"])
