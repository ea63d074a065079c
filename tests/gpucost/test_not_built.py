"""Whatever the contract names and this version lacks exits 2 and says so."""

import re

import pytest
from click.shell_completion import BashComplete

from gpucost.cli import COMMANDS, FIRST, GROUPS, MERGED, cli
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import training

# Every command of the contract, in its order.
CONTRACT = (
    "profile",
    "import",
    "diagnose",
    "top",
    "plan",
    "report",
    "recipe",
    "quote",
    "prices",
    "capacity",
    "diff",
    "fleet",
    "provision",
    "list",
    "show",
    "down",
    "extend",
    "logs",
    "ssh",
    "reap",
    "run",
    "verify",
    "export",
    "reconcile",
    "bill",
    "loop",
    "watch",
    "scan",
    "accuracy",
    "doctor",
    "explain",
    "demo",
    "examples",
    "iam-policy",
    "init",
    "mcp",
    "schema",
    "serve",
    "completion",
    "compare",
    "help",
)

# Options of the contract that this version refuses: command, arguments.
OPTIONS = (("plan", "--allow-gpu-change"),)

# Options of the contract that work, by command.
BUILT = {
    "import": "-o --format --gpu --kind --precision --batch --work --tz --map --name --job --label "
    "--since --until --step --match --job-label --jobs-by --recorded --recording-rules",
    "diagnose": "--jobs-by",
    "plan": "--objective --deadline --budget --provider --region --gpu --gpus --purchase "
    "--hours-per-month --work-total --egress --storage --slo-ms --consolidate --no-consolidate "
    "--max-slowdown --max-moves --time-limit --current --include --engineer-rate --as-of -o "
    "--report --fail-over --price "
    "--whole-machine --machine-only --fail-over-increase --base --launchable --history --jobs-by "
    "--lang --fx",
    "loop": "--ab --budget --folder --dry-run --yes --numeric -f",
    "verify": "--plan --option --bill --changed --job -o --report -f",
    "report": "-o --style --lang --fx --series --base --fail-over --fail-over-increase",
    "diff": "--style --lang -f",
    "recipe": "--option --numeric -o",
    "run": "--recipe --option --numeric --ab --find-batch -o",
    "export": "--to -o --option --run --ttl --idle --image --numeric --focus-version "
    "--fleet --by --queue --autoscaler --tz",
    "reconcile": "--option -f",
    "bill": "--tz --measured -f",
    "provision": "--option --placement --type --region --ttl --count --purchase --max-cost "
    "--ssh-key --image --dry-run --yes --allow-stale --no-self-destroy "
    "--recipe --sync --data --run --collect --kubernetes --min --max",
    "down": "--all --yes",
    "examples": "--force",
    "init": "--provider --region --hours-per-month --engineer-rate --yes --force",
    "mcp": "--budget --root",
    "reap": "--all-owners --dry-run --yes",
    "scan": "--provider --region --owner-tag --fail-over --webhook -f",
    "quote": "--duration --count --purchase --egress --storage --as-of --option",
    "prices": "--provider --gpu --gpus --region --max-price --purchase --sort --as-of --group-by",
}


PRINTING = (
    "diagnose",
    "verify",
    "plan",
    "quote",
    "prices",
    "doctor",
    "explain",
    "bill",
    "provision",
    "list",
    "show",
    "reap",
)


def test_every_command_of_the_contract_is_built() -> None:
    """The commands are those of the contract."""
    assert sorted([*COMMANDS, *MERGED]) == sorted(CONTRACT)


@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_a_later_option_says_so(arguments: tuple[str, ...], call: Call, write: Write) -> None:
    """An option that is not built exits 2 and names itself, also before any file is read."""
    write("profile.json", training())
    ran = call(*arguments)
    assert ran.code == 2, ran.out
    assert "not built yet" in ran.err
    assert arguments[1] in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_help_and_completion_never_offer_what_is_not_built(
    arguments: tuple[str, ...], call: Call
) -> None:
    """Neither names an option, or a word of an option, that exits 2."""
    command, option, *words = arguments
    shown = call(command, "--help").out + call(command, "--help-all").out
    completion = BashComplete(cli, {}, "gpucost", "_GPUCOST_COMPLETE")
    chosen = option in ("--style", "--lang", "--to")
    typed = [command, option] if chosen else [command]
    offered = [one.value for one in completion.get_completions(typed, "" if chosen else "--")]
    assert offered
    refused = words[0] if chosen else option
    assert refused not in offered
    assert not re.search(rf"(?<![\w-]){refused}(?![\w-])", shown)


@pytest.mark.parametrize("command", BUILT)
def test_the_options_of_the_contract_are_offered(command: str, call: Call) -> None:
    """Every built option of the contract is in the command's help."""
    offered = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", call("help", command).out))
    assert set(BUILT[command].split()) <= offered


@pytest.mark.parametrize("command", COMMANDS)
def test_the_common_options_are_everywhere(command: str, call: Call) -> None:
    """-q, -v and --no-color are offered by every command that prints."""
    if command in ("completion", "help"):
        pytest.skip("prints a script for the shell, or help")
    shown = call(command, "--help").out + call(command, "--help-all").out
    assert all(option in shown for option in ("--quiet", "--verbose", "--no-color"))


@pytest.mark.parametrize(
    "command",
    [
        "diagnose",
        "plan",
        "quote",
        "prices",
        "doctor",
        "explain",
        "provision",
        "list",
        "show",
        "reap",
        "scan",
    ],
)
def test_what_prints_a_table_also_prints_other_formats(command: str, call: Call) -> None:
    """-f/--format is offered wherever data is printed."""
    assert "--format" in call(command, "--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str, call: Call) -> None:
    """The help of every command ends with an example of that command."""
    ran = call(command, "--help")
    assert ran.code == 0
    assert ran.err == ""
    assert f"gpucost {command}" in " ".join(ran.out.partition("Example:")[2].split())


def test_the_general_help_names_every_command(call: Call) -> None:
    """`gpucost --help` names what is built in under 40 lines, five commands first."""
    ran = call("--help")
    assert ran.code == 0
    assert len(ran.out.splitlines()) < 40
    shown = [*FIRST, *" ".join(GROUPS.values()).split()]
    assert sorted(shown) == sorted(COMMANDS)
    assert all(command in ran.out for command in shown)
    assert "Example:" in ran.out


@pytest.mark.parametrize("arguments", [("pln",), ("plan", "--budgt", "3"), ("explain",), ()])
def test_bad_usage_is_exit_2(arguments: tuple[str, ...], call: Call) -> None:
    """An unknown command or option, or a missing argument, exits 2 with a message."""
    ran = call(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err


@pytest.mark.parametrize("command", ["plan", "provision"])
def test_rare_options_stand_under_help_all(command: str, call: Call) -> None:
    """`--help` has at most 60 lines and says where the others are; both ways show them all."""
    short, every = call(command, "--help").out, call(command, "--help-all").out
    assert len(short.splitlines()) <= 60
    assert "--help-all" in short
    assert len(every.splitlines()) > len(short.splitlines())
    assert every == call("help", command).out


def test_a_mistyped_command_names_the_nearest(call: Call) -> None:
    """`gpucost plna` asks whether plan was meant; `help` of nothing lists what each does."""
    assert "Did you mean 'plan'?" in call("plna").err
    shown = " ".join(call("help").out.split())
    assert all(summary in shown for _, summary in COMMANDS.values())
    assert call("help", "nothing").code == 2
