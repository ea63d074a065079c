"""Defaults: flag over environment over ./gpucost.toml over the user's own file."""

from pathlib import Path

import pytest

from gpucost.arguments.settings import MAY_SET, load_settings, long_options
from gpucost.cli import COMMANDS, load_command
from gpucost.commands.planning.plan import command
from pricing.errors import InputError
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, training

BASE = ("plan", "--as-of", AS_OF, "-q", "-f", "json")


@pytest.fixture(autouse=True)
def profile(write: Write) -> None:
    """Have a profile.json to plan."""
    write("profile.json", training())


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, named by GPUCOST_CONFIG."""
    path = tmp_path / "own.toml"
    path.write_text("", encoding="utf-8")
    monkeypatch.setenv("GPUCOST_CONFIG", str(path))
    return path


def _providers(call: Call, *arguments: str) -> set[str]:
    ran = call(*BASE, *arguments)
    assert ran.code == 0, ran.err
    return {o["offer"]["provider"] for o in ran.json["jobs"][0]["options"]}


# Each layer names another provider; the answer tells which of them was heard.
LAYERS = ("user", "project", "environment", "flag")
NAMED = dict(zip(LAYERS, ("lambda", "vultr", "oci", "digitalocean"), strict=True))


@pytest.mark.parametrize("highest", range(1, len(LAYERS) + 1))
def test_the_highest_layer_is_heard(
    highest: int, call: Call, write: Write, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the lowest layers set, the highest of them decides."""
    there = LAYERS[:highest]
    user_file.write_text(f'[plan]\nprovider = ["{NAMED["user"]}"]\n', encoding="utf-8")
    if "project" in there:
        write("gpucost.toml", f'[plan]\nprovider = ["{NAMED["project"]}"]\n')
    if "environment" in there:
        monkeypatch.setenv("GPUCOST_PLAN_PROVIDER", NAMED["environment"])
    flags = ("--provider", NAMED["flag"]) if "flag" in there else ()
    assert _providers(call, *flags) == {NAMED[there[-1]]}


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("budget", '"1"', 3),
        ("budget", "1", 3),
        ("budget", "1.5", 3),
        ("deadline", '"1m"', 2),
        ("gpus", '"7"', 3),
        ("gpus", "7", 3),
        ("fail-over", "1", 7),
        ("region", '["mars"]', 2),
        ("max-slowdown", "0.5", 2),
        ("provider", '["nowhere"]', 2),
        ("gpu", '["H1000"]', 2),
        ("purchase", '["lease"]', 2),
    ],
)
def test_a_setting_is_called_like_its_flag(
    key: str, value: str, code: int, call: Call, write: Write
) -> None:
    """A key without its dashes does what the flag does, whatever the option is called inside."""
    write("gpucost.toml", f"[plan]\n{key} = {value}\n")
    assert call("plan", "--as-of", AS_OF).code == code


@pytest.mark.parametrize("file_format", ["json", "csv", "md"])
def test_the_format_can_be_set(file_format: str, call: Call, write: Write) -> None:
    """`format` in a file is what -f is on the command line."""
    write("gpucost.toml", f'[plan]\nformat = "{file_format}"\n')
    asked = call("plan", "--as-of", AS_OF, "-f", file_format, "-q").out
    assert call("plan", "--as-of", AS_OF, "-q").out == asked


def test_one_text_is_a_list_of_one(call: Call, write: Write) -> None:
    """A repeatable option may be set to a single text."""
    write("gpucost.toml", '[plan]\nprovider = "digitalocean"\n')
    assert _providers(call) == {"digitalocean"}


BAD = {
    "no TOML": "[plan\n",
    "outside a section": "budget = 1\n",
    "an unknown key": "[plan]\nbudgt = 1\n",
    "an unknown section": "[plann]\nbudget = 1\n",
    "a list for one value": "[plan]\nbudget = [1]\n",
    "a table for one value": "[plan.budget]\nx = 1\n",
    "a flag for a number": "[plan]\nbudget = true\n",
    "not UTF-8": b"[plan]\nx = '\xff'\n",
    "not built": '[plan]\nhistory = "x"\n',
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_setting_is_refused_and_named(case: str, call: Call, write: Write) -> None:
    """A file that cannot be meant ends with exit 2 and names file or key; never silence."""
    write("gpucost.toml", BAD[case])
    ran = call("plan", "--as-of", AS_OF)
    assert ran.code == 2, ran.err
    assert any(word in ran.err for word in ("gpucost.toml", "--budget", "--history"))


def test_every_stray_key_is_listed(write: Write) -> None:
    """All keys outside a section are reported at once."""
    write("gpucost.toml", "a = 1\nb = 2\n")
    with pytest.raises(InputError) as caught:
        load_settings(command, ("plan",))
    assert len(caught.value.problems) == 2


def test_a_named_file_must_exist(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUCOST_CONFIG with a name of no file exits 2 and names both."""
    monkeypatch.setenv("GPUCOST_CONFIG", "gone.toml")
    ran = call("plan")
    assert ran.code == 2
    assert "GPUCOST_CONFIG" in ran.err
    assert "gone.toml" in ran.err


def test_the_users_own_file_is_found(call: Call, tmp_path: Path) -> None:
    """Without GPUCOST_CONFIG the file in the user's configuration folder is read."""
    folder = tmp_path / "config" / "gpucost"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[plan]\nbudget = "1"\n', encoding="utf-8")
    assert call("plan", "--as-of", AS_OF).code == 3


@pytest.mark.parametrize(
    "variable", ["GPUCOST_VERSION", "GPUCOST_HELP", "GPUCOST_STATE_DIR", "GPUCOST_CACHE_DIR"]
)
@pytest.mark.parametrize("value", ["1", "0.1.0"])
def test_a_variable_of_another_meaning_changes_nothing(
    variable: str, value: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables a build or the contract uses otherwise do not turn into flags."""
    plain = call(*BASE)
    monkeypatch.setenv(variable, value)
    assert call(*BASE) == plain


def test_settings_do_not_stop_help_or_version(call: Call, write: Write) -> None:
    """A broken file stands in the way of neither --version nor --help."""
    write("gpucost.toml", "[plan\n")
    assert call("--version").code == 0
    assert call("--help").code == 0


def test_the_section_of_own_hardware_disturbs_no_command(call: Call) -> None:
    """[own_hardware] holds facts, not options: every command runs beside it."""
    Path("gpucost.toml").write_text('[own_hardware]\nname = "rack 1"\n', encoding="utf-8")
    ran = call("explain", "idle")
    assert ran.code == 0, ran.err
    Path("gpucost.toml").write_text('[own_hardwar]\nname = "rack 1"\n', encoding="utf-8")
    ran = call("explain", "idle")
    assert ran.code == 2
    assert "[own_hardware]" in ran.err


def _every_option() -> list[tuple[str, str]]:
    return [(name, flag) for name in COMMANDS for flag in long_options(load_command(name))]


# Spends, ends, believes without asking, hides a question, writes somewhere.
NEVER = {
    "yes",
    "all",
    "all-owners",
    "type",
    "image",
    "ssh-key",
    "max-cost",
    "ttl",
    "placement",
    "allow-stale",
    "no-self-destroy",
    "no-wait",
    "output",
    "report",
    "accept-jumps",
    "offline",
    "pid",
    "data",
    "from",
    "log",
    "dry-run",
    "recipe",
    "install",
    "uninstall",
    "environment",
}
LAUNCHING = ("provision", "extend", "down", "reap", "watch")


def test_a_project_sets_nothing_that_spends_ends_or_writes() -> None:
    """No command that launches or ends, and no flag of the list above, is a project's to set."""
    every = list(_every_option())
    assert len(every) > 400
    forbidden = [(name, flag) for name, flag in every if flag in NEVER or name in LAUNCHING]
    assert [(name, flag) for name, flag in forbidden if flag in MAY_SET.get(name, ())] == []


def test_what_a_project_may_set_exists() -> None:
    """The list names options that there are."""
    listed = {(name, flag) for name, flags in MAY_SET.items() for flag in flags}
    assert listed - set(_every_option()) == set()


MEDDLING = {
    "a launch without a question": '[provision]\nyes = true\ntype = "digitalocean/x"\ncount = 3\n',
    "an end without a question": "[down]\nall = true\nyes = true\n",
    "a cap": '[provision]\nmax-cost = "999999"\n',
    "an image": '[provision]\nimage = "ami-00000000"\n',
    "a key": '[provision]\nssh_key = "theirs"\n',
    "a file to write": '[plan]\noutput = "../.bashrc"\n',
    "somebody else's machines": "[reap]\nall-owners = true\n",
}


@pytest.mark.parametrize("case", MEDDLING)
@pytest.mark.parametrize("arguments", [("provision",), ("down",), ("plan", "--as-of", AS_OF)])
def test_a_cloned_repository_decides_nothing(
    case: str, arguments: tuple[str, ...], call: Call, write: Write, user_file: Path
) -> None:
    """Whatever command runs, such a file is refused, and the user's own file is named instead."""
    write("gpucost.toml", MEDDLING[case])
    ran = call(*arguments)
    assert ran.code == 2
    assert "not allowed in a project's file" in ran.err
    assert str(user_file) in ran.err


def test_the_users_own_file_sets_what_a_project_may_not(call: Call, user_file: Path) -> None:
    """The same lines in the user's own file are heard."""
    user_file.write_text('[plan]\nreport = "own.md"\n', encoding="utf-8")
    assert call("plan", "--as-of", AS_OF, "-q").code == 0
    assert Path("own.md").is_file()
