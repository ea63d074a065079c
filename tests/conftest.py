"""What every test may use, and which tests are slow."""

import atexit
import gc
import os
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from providers import redaction
from tests.fake_nvml.fixture import fake_nvml, nvml_folder

__all__ = ["fake_nvml", "nvml_folder"]  # fixtures of every test

gc.disable()  # until all is collected: nothing of it is garbage

# The tests start several hundred Pythons: compiling everything in each was a third of their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# numpy starts a thread a core, each of which spins for a while: a tenth of a second a process.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# What is printed is as wide as a pipe, whatever terminal the tests were started from.
os.environ.pop("COLUMNS", None)

# Prices that tests refresh are theirs: nothing of them gets into the cache of who runs the tests,
# not even from a thread that outlives its test.
os.environ["GPUCOST_CACHE_DIR"] = tempfile.mkdtemp(prefix="gpucost-tests-")
atexit.register(shutil.rmtree, os.environ["GPUCOST_CACHE_DIR"], ignore_errors=True)

# Property tests are never timed, for a machine may be busy, and draw the same cases each run: what
# CI says of a commit is said of that commit. GPUCOST_HYPOTHESIS=random draws others, and more of
# them, as every night does.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("random", deadline=None, max_examples=200)
settings.load_profile(os.environ.get("GPUCOST_HYPOTHESIS") or "same")

ROOT = Path(__file__).resolve().parent.parent


# Data sets, specifications and samples that are not ours to pass on; most tests of them lie in
# tests/outside, all are marked `outside`.
OUTSIDE = Path(os.environ.get("GPUCOST_OUTSIDE_DATA") or ROOT.parent / "shared")

# Folders and files of which every test starts processes or servers, or runs the documentation;
# single tests are marked where they stand. `make quick` leaves all of them out, and holds the rest
# to it.
SLOW = (
    "bootstrap/",
    "chaos/",
    "diagnosis/test_verdicts.py",
    "gpucost/applying/test_run.py",
    "gpucost/jobs/",
    "gpucost/launch/",
    "gpucost/machines/test_end_role.py",
    "gpucost/machines/test_extend.py",
    "gpucost/machines/test_scan.py",
    "gpucost/machines/test_gone.py",
    "gpucost/machines/test_taken_over.py",
    "gpucost/machines/test_journal_trouble.py",
    "gpucost/machines/test_mcp.py",
    "gpucost/machines/test_secrets.py",
    "gpucost/machines/test_watch.py",
    "gpucost/planning/test_ci_steps.py",
    "gpucost/planning/test_large_plan.py",
    "gpucost/pools/",
    "gpucost/prices/test_prices_feeds.py",
    "gpucost/prices/test_prices_update",
    "gpucost/prices/test_published_prices.py",
    "gpucost/profiling/",
    "gpucost/test_completing.py",
    "gpucost/test_import_live.py",
    "gpucost/test_installed_command.py",
    "gpucost/test_name_clashes.py",
    "gpucost/test_progress.py",
    "gpucost/test_recording_rules.py",
    "gpucost/test_screens.py",
    "gpucost/test_settings.py",
    "live/",
    "measure/",
    "outside/",
    "planner/prediction/test_side_by_side.py",
    "planner/proof/test_simulated.py",
    "telemetry/test_sniff.py",
    "probe/",
    "providers/",
    "templates/test_report.py",
    "templates/test_strangers.py",
    "templates/test_typed_commands.py",
    "test_docs.py",
    "test_package.py",
    "test_same_bytes.py",
    "torch/",
    "vm/",
)


# Slow proofs: `make test` leaves them out, `make slow-test` runs them, every night. Of a table of
# cases those stay in `make test` that are named here, by what they are; where all are proofs, the
# comment says what stays as a guard.
PROOFS: dict[str, tuple[str, ...]] = {
    "bootstrap/test_settings.py::test_a_second_run_changes_nothing": (
        "eight over NVLink, capped",
        "sliced by MIG",
        "jobs on slices",
    ),
    "bootstrap/test_idle.py::test_no_reading_is_not_idle": ("no script", "silent"),
    "bootstrap/test_thirty_plans.py::test_every_script_is_clean": ("a fifth",),
    "chaos/test_chaos.py::test_nothing_is_left_and_nothing_untrue_is_said": ("lambda",),
    "diagnosis/test_verdicts.py::test_readings_a_little_off_change_no_verdict_of_useful_work": (
        "1.05",
    ),
    "gpucost/jobs/test_hostile_results.py::test_a_profile_of_a_machine_is_read_before_it_counts": (
        "echo '[[[[[['-after.json:",
    ),
    # Without rsync a command fails, and all arrives before it does, in the same file.
    "gpucost/jobs/test_job_run.py::test_from_a_plan_to_the_end_of_its_machine": ("rsync",),
    "gpucost/jobs/test_resumed.py::test_the_connection_breaks_at_every_call": ("after",),
    # The connection that breaks at every call, above, goes the same way.
    "gpucost/jobs/test_resumed.py::test_this_computer_dies_at_every_call": (),
    "gpucost/launch/test_provision_aws.py::test_plan_to_ready_to_down": (
        "1-1x GPU",
        "2-8x GPU, spot",
    ),
    "gpucost/loop/test_loop.py::test_a_loop_goes_on_where_it_was_cut_off": (
        "interrupts-run",
        "fails-verify",
        "fails-plan",
    ),
    "gpucost/machines/test_gone.py::test_a_kind_that_cannot_be_listed_keeps_no_machine": (
        "403-/v2/firewalls",
        "500-/v2/account/keys",
    ),
    "gpucost/launch/test_machine_settings.py::test_plan_recipe_and_machine_say_the_same": (
        "examples/hard/llm-35-mfu.json",
        "examples/hard/jax-speech.json",
        "examples/hard/xgboost.json",
        "examples/hard/pods-one-machine/pod-0.json",
        "examples/train-8xh100-aws.json",
        "examples/fleet/infer-captions.json",
        "examples/visual-search.json",
        "examples/notebook.json",
    ),
    # Two servers on one state folder share its budget, in the same file.
    "gpucost/machines/test_mcp.py::test_processes_share_one_budget": (),
    "gpucost/machines/test_mcp.py::test_a_server_that_is_ended_during_a_launch_leaves_no_orphan": (
        "9",
    ),
    "gpucost/planning/test_ci_steps.py::test_the_action_comments_once_and_holds_the_limit": (
        "first",
    ),
    # Smaller folders are one call, in the same file.
    "gpucost/planning/test_import_folders.py::test_hundreds_of_logs_are_one_call": (),
    # Several processes write the bytes of one, in the same file.
    "gpucost/planning/test_large_plan.py::test_a_cluster_plans_the_same": (),
    # That problems are told alike stays, in the same file.
    "gpucost/planning/test_large_plan.py::test_no_folder_for_the_file": (),
    "gpucost/planning/test_large_plan.py::test_secrets_are_hidden": ("both",),
    "gpucost/planning/test_large_plan.py::test_the_same_bytes_and_screen": ("a process dies",),
    "gpucost/prices/test_prices_update.py::test_a_poisoned_answer_changes_nothing_and_says_so": (
        "0-401",
        "1-missing price",
        "0-500 on page 2",
        "1-an empty list",
        "0-zero price",
    ),
    "gpucost/profiling/test_callbacks.py::test_a_training_leaves_its_profile": ("Lightning",),
    "gpucost/profiling/test_profile_child.py::test_the_job_cannot_tell": (
        "several processes as torchrun's",
        "a chain of exec",
        "ignored signals",
        "closed descriptors",
        "on a terminal, in front",
        "process substitution",
        "another user, no rights",
    ),
    "gpucost/profiling/test_profile_child.py::"
    "test_the_job_cannot_tell_that_settings_would_be_applied": (
        "several processes as torchrun's-",
        "a pipeline---ab",
    ),
    "gpucost/test_name_clashes.py::test_python_m_imports_nothing_from_the_working_folder": (
        "-m gpucost-planner",
        "-mgpucost-json",
        "-um gpucost-click",
        "-m gpucost.entry-typing",
    ),
    # A sleep beside neighbours, one GPU of eight, and a share of one GPU, in the same file.
    "gpucost/profiling/test_profile_machine.py::test_three_jobs_of_two_users_are_told_apart": (),
    "gpucost/profiling/test_profile_machine.py::"
    "test_a_job_that_was_seen_on_no_gpu_counts_what_it_may_use": ("1,2-indices1", "-indices3"),
    # A profile of the same job is replaced, another's stays, ranks have names, in the same file.
    "gpucost/profiling/test_profile_names.py::"
    "test_three_measurements_at_once_write_three_profiles": (),
    # SIGINT reaches the command, and we end by the signal that ends it: test_profile.py.
    "gpucost/profiling/test_profile_terminal.py::test_a_loop_ends_at_ctrl_c": (),
    "gpucost/profiling/test_profile_terminal.py::test_the_background_is_left_in_peace": ("tostop",),
    "gpucost/profiling/test_measuring.py::test_steps_of_an_optimizer_are_found": (
        "imported within",
    ),
    "gpucost/profiling/test_profile.py::test_a_full_disk_costs_later_readings_only": (
        "4096-profile.json",
    ),
    "gpucost/profiling/test_profile.py::test_a_killed_measurement_leaves_its_capture": (
        "_kill_ours",
    ),
    "gpucost/profiling/test_profile.py::test_signals_reach_the_command": ("2", "10"),
    "gpucost/profiling/test_profile_ends.py::test_a_short_burner_reads_what_its_own_clock_says": (
        "2",
    ),
    "gpucost/profiling/test_profile_ends.py::"
    "test_a_stream_that_the_caller_closed_changes_no_exit_code": ("<&- >&- 2>&-",),
    # What each device's readings are: measure/test_nvml.py.
    "gpucost/profiling/test_profile_gpus.py::test_the_profile_says_what_the_trace_says": (
        "8xH100",
        "MIG",
    ),
    "gpucost/profiling/test_profile_hangs.py::test_a_driver_in_trouble_disturbs_nothing": (
        "it hangs in the middle",
        "it ends the process",
    ),
    "gpucost/profiling/test_profile_places.py::test_few_descriptors_cost_the_profile_at_most": (
        "10",
    ),
    "gpucost/profiling/test_profile_places.py::test_no_room_for_steps_costs_the_steps_alone": (
        "both",
    ),
    # A folded capture tells the same, in the same file.
    "measure/test_long_captures.py::test_a_week_fits_with_the_shipped_limits": (),
    "measure/test_long_captures.py::test_twice_the_time_is_no_larger_file": (),
    # Nine of its fourteen sections, and that page and scores are of one evaluation: the same file.
    "outside/test_accuracy_page.py::test_the_page_is_what_the_evaluation_gives": (),
    # The factor that ships is better than its neighbours, in the same file.
    "outside/test_mixture_runs.py::test_models_that_were_left_out_are_told_four_times_better": (),
    # What interactive runs reach, of the same offline ones, in the same file.
    "outside/test_serving_runs.py::test_mlperf_server_from_offline": (),
    # The first rows of the same table, in the same file.
    "outside/test_telemetry_samples.py::test_a_table_with_a_row_for_each_job_is_as_many_jobs": (),
    "planner/choice/test_weighing.py::test_few_weighed_tell_what_all_would": (
        "as it comes",
        "too dear today",
    ),
    "planner/choice/test_weighing.py::test_nothing_spends_less_than_at_least": (
        "as it comes",
        "too dear today",
    ),
    # Smaller pools are packed by the same orders, in the same file.
    "planner/packing/test_at_once.py::"
    "test_of_a_large_pool_the_best_orders_are_found_on_some_of_it": (),
    "planner/plan/test_from_plan.py::test_an_example_made_now_is_the_example_read_back": (
        "fleet",
        "visual-search.json",
        "train-8xh100-aws.json",
        "notebook.json",
        "well-used.json",
        "hard/hpo-stuck.json",
        "hard/two-nodes-efa.json",
        "hard/gh200-service.json",
        "hard/eu-transcripts.json",
    ),
    # Hours that are forecast from the first half of the traces, in the same file.
    "planner/prediction/test_interruption.py::"
    "test_billed_hours_match_replay_with_the_traces_own_rate": (),
    "planner/proof/test_speed.py::test_the_interval_of_a_mean_covers_it": ("0.5",),
    # The other tests of the probe take it from its folder; CI installs the wheel of the whole.
    "probe/test_distribution.py::test_a_program_measures_itself_without_gpucost": (),
    "probe/test_undisturbed.py::test_a_program_ends_as_it_would_without_us": (
        "hooks-well",
        "hooks-warning",
        "hooks-exit code",
        "hooks-error in the data",
        "hooks-error in a closure",
        "hooks-interrupted",
        "hooks-killed",
        "hooks-terminated",
        "no-hooks-well",
        "no-hooks-exit text",
        "no-hooks-aborted",
    ),
    "telemetry/test_hours.py::test_a_service_that_answers_at_night_is_not_left_on": (
        "0-1",
        "10-4",
        "20-6",
    ),
    "telemetry/test_large_logs.py::test_blocks_change_nothing": (
        "plain",
        "MIG",
        "quotes",
        "hosts",
        "epochs",
        "other units",
        "bad times",
        "a gap",
        "header repeated",
        "rows out of order",
        "cut inside a unit",
        "windows line ends",
        "some uuids blanked",
        "short and long rows",
    ),
    "templates/test_report.py::test_no_text_of_a_profile_is_markup": (
        "markup-job",
        "a table-unit",
        "a link-note",
        "an image-job",
        "a fence-note",
        "a comment-job",
        "a command-unit",
        "a form feed-job",
        "the end of a fold-note",
        "control characters-unit",
        "backslashes-job",
    ),
    "templates/test_report_screen.py::test_many_jobs_fit_into_a_comment": (
        "short-7-7",
        "long-7-7",
        "markup-7-7",
        "short-40-3",
        "long-40-40",
        "markup-64-64",
    ),
    "templates/test_strangers.py::test_no_field_comes_alive_in_a_report": (
        "md-visual-search",
        "html-visual-search",
        "github-comment-visual-search",
    ),
    "test_docs.py::test_documented_commands_print_what_the_page_shows": (
        "README.md",
        "docs/tutorial.md",
    ),
    # The wheel is built once, and looked into.
    "test_package.py::test_a_wheel_of_one_commit_has_the_same_bytes": (),
}


# Long tables of like cases: every n-th stays in `make test`, the night runs all of them. What each
# case is a sample of is one guarantee, which the cases that stay state as well.
THINNED: dict[str, int] = {
    "diagnosis/test_labelled.py::test_a_case_of_ours_can_be_read": 4,
    "outside/test_no_contradictions.py::"
    "test_a_labelled_case_is_answered_without_a_contradiction": 5,
    "planner/test_pipeline.py::test_every_offer_of_the_catalog_can_be_judged": 5,
    "telemetry/test_lake_engines.py::test_every_question_is_one_statement_of_the_engine": 3,
    "telemetry/test_mapped_columns.py::test_every_reading_can_be_mapped_in_every_unit": 4,
    "templates/test_whole_answers.py::test_no_verdict_is_bare": 4,
}


@pytest.fixture(scope="session")
def shared() -> Path:
    """The data outside of the repository; tests that need it skip without it."""
    if not OUTSIDE.is_dir():
        pytest.skip("the data outside of the repository is absent")
    return OUTSIDE


def _is_slow(path: Path) -> bool:
    """Whether a file or folder of tests is named in SLOW, or lies in a folder that is."""
    place = path.relative_to(ROOT / "tests").as_posix()
    return place.startswith(SLOW) or f"{place}/" in SLOW


def _is_proof(item: pytest.Item, before: Counter[str]) -> bool:
    """Whether PROOFS or THINNED has a test, and its case is not among those that stay.

    Args:
        item: the test.
        before: the cases of each test that were asked about, which this one is added to.
    """
    name = item.nodeid.removeprefix("tests/").partition("[")[0]
    case = getattr(item, "callspec", None)
    number = before[name]
    before[name] += 1
    is_thinned = bool(number % THINNED.get(name, 1))
    return is_thinned or (name in PROOFS and (case is None or case.id not in PROOFS[name]))


def _only_quick(config: pytest.Config) -> bool:
    return config.option.markexpr == "not slow"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what `make quick` leaves out."""
    inside = collection_path.is_relative_to(ROOT / "tests")
    return True if _only_quick(config) and inside and _is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests and proofs by the tables above, what needs data of others by its fixture."""
    before: Counter[str] = Counter()
    for item in items:
        if _is_proof(item, before):
            item.add_marker("proof")
            item.add_marker("slow")
        if _is_slow(item.path):
            item.add_marker("slow")
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("outside")
            item.add_marker("slow")


_STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork", "socket.bind"))
_quick_now = False


def _hold_to_quick(event: str, _: object) -> None:
    """Fail a quick test at the first process or server that it starts."""
    if _quick_now and event in _STARTS:
        pytest.fail(f"a quick test comes to {event}: mark it slow, or name its file in SLOW")


sys.addaudithook(_hold_to_quick)


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """What a test, or a command run within it, sets or learns of secrets is gone after it."""
    before = dict(os.environ)
    yield
    redaction._learned.clear()  # noqa: SLF001 - only tests forget
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """On a fresh clone, let one worker compile the tests, which takes 20 s, and the rest read."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    done = Path(tempfile.gettempdir(), f"gpucost-{os.environ.get('PYTEST_XDIST_TESTRUNUID')}")
    until = time.monotonic() + 120.0
    if worker not in (None, "gw0") and not (ROOT / ".hypothesis" / "constants").exists():
        while not done.exists() and time.monotonic() < until:
            time.sleep(0.1)
    try:
        return (yield)
    finally:
        if worker == "gw0":
            done.touch()
            atexit.register(done.unlink)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Look for cycles less often, and never among what was collected: half a gigabyte of tests."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tell the hook above which kind of test runs."""
    global _quick_now  # noqa: PLW0603 - an audit hook knows no test
    _quick_now = item.get_closest_marker("slow") is None
    try:
        return (yield)
    finally:
        _quick_now = False


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Send the count of reruns at once: each short test waited 40 ms for an acknowledgment."""
    connection = getattr(getattr(config, "failures_db", None), "sock", None)
    if connection is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers for two cores, for tests wait for what they started; one a core where none do.

    Each worker costs the imports of all tests.
    """
    cores = len(os.sched_getaffinity(0))
    return cores if _only_quick(config) else cores + (cores + 1) // 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that rewrites golden files."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))
