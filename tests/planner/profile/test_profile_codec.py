"""A profile.json is read whole or refused with every problem and its JSON path."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.profile.codec import dump, parse_profiles
from planner.profile.model import Profile
from pricing.errors import InputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
SECTIONS = ("job", "hardware", "window", "work", "step", "gpus", "host", "usage", "provenance")


def read(document: Any) -> Profile:
    """The one profile of a JSON document."""
    (profile,) = parse_profiles(json.dumps(document).encode(), "p.json")
    return profile


def problems(data: bytes) -> str:
    """What is said about bad bytes."""
    with pytest.raises(InputError) as caught:
        parse_profiles(data, "p.json")
    assert all(problem.startswith("p.json") for problem in caught.value.problems)
    return "\n".join(caught.value.problems)


def of_metric(slot: str, value: Any) -> dict[str, Any]:
    """A profile with one reading."""
    return {"gpus": [{"metrics": {slot: value}}]}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (of_metric("util.kernel_time", {"mean": 55}), "gpus[0].metrics.util.kernel_time.mean", "0.55"),
    (of_metric("util.kernel_time", {"mean": -0.1}), "util.kernel_time.mean", "less than 0"),
    (of_metric("power.board_w", {"mean": -3.2}), "gpus[0].metrics.power.board_w.mean", "-3.2"),
    (of_metric("power.board_w", {"mean": float("nan")}), "power.board_w.mean", "nan"),
    (of_metric("power.board_w", {"mean": float("inf")}), "power.board_w.mean", "inf"),
    (of_metric("power.board_w", {"mean": 10**400}), "power.board_w.mean", "leave out"),
    (of_metric("power.board_w", {"mean": "80"}), "power.board_w.mean", "a number is wanted"),
    (of_metric("power.board_w", {"mean": True}), "power.board_w.mean", "a number is wanted"),
    (of_metric("power.board_w", {"p50": 9, "p95": 3}), "power.board_w", "p50 9 above p95 3"),
    (of_metric("power.board_w", {"mean": 9, "max": 3}), "power.board_w", "mean 9 above max 3"),
    (of_metric("power.board_w", {"average": 9}), "power.board_w.average", "is not one of mean"),
    (of_metric("power.board_w", "80 W"), "power.board_w", "write {"),
    (of_metric("util.kernel_tim", 0.5), "util.kernel_tim", "did you mean util.kernel_time?"),
    ({"gpus": {}}, "gpus", "a list is wanted"),
    ({"gpus": [None]}, "gpus[0]", "an object is wanted"),
    ({"gpus": [{"metrics": []}]}, "gpus[0].metrics", "an object from slot"),
    ({"job": []}, "job", "an object is wanted"),
    ({"job": {"kind": "trainig"}}, "job.kind", "one of training"),
    ({"job": {"name": 7}}, "job.name", "text is wanted"),
    ({"job": {"batch_per_gpu": 1.5}}, "job.batch_per_gpu", "a whole number"),
    ({"job": {"batch_per_gpu": 0}}, "job.batch_per_gpu", "less than 1"),
    ({"job": {"latency_slo_ms": 0}}, "job.latency_slo_ms", "more than 0"),
    ({"hardware": {"gpu_cout": 4}}, "hardware.gpu_cout", "did you mean gpu_count?"),
    ({"hardware": {"purchase": "spott"}}, "hardware.purchase", "one of on_demand"),
    ({"hardware": {"gpu_count": 0}}, "hardware.gpu_count", "less than 1"),
    ({"host": {"cpu_util": {"mean": 97}}}, "host.cpu_util.mean", "0.97"),
    ({"window": {"start": "yesterday"}}, "window.start", "2026-11-01T10:00:00Z"),
    ({"window": {"start": 1700000000}}, "window.start", "2026-11-01T10:00:00Z"),
    ({"window": {"coverage": 99}}, "window.coverage", "0.99"),
    ({"usage": {"hours_per_month": 800}}, "usage.hours_per_month", "more than 744"),
    ({"schema": "gpucost.profile/v9", "job": {}}, "schema", "gpucost.profile/v1 is wanted"),
    ({"schema": None, "job": {}}, "schema", "gpucost.profile/v1 is wanted"),
    ({}, "p.json", "nothing of a profile"),
]


@pytest.mark.parametrize(("document", "path", "said"), WRONG)
def test_a_wrong_field_is_named_with_its_path(
    document: dict[str, Any], path: str, said: str
) -> None:
    """Every wrong value says where it is and what is wanted."""
    told = problems(json.dumps(document).encode())
    assert path in told
    assert said in told


def test_a_wait_without_the_length_of_a_step_is_refused_and_beside_it_read() -> None:
    """What of a step is waiting says nothing without the step: refused, never dropped."""
    step = {"data_wait_s": 1.2}
    assert "p.json: step.data_wait_s needs step.mean_s" in problems(
        json.dumps({"job": {"name": "j"}, "step": step}).encode()
    )
    whole = read({"job": {"name": "j"}, "step": {**step, "mean_s": 2.0}}).step
    assert (whole.mean_s, whole.data_wait_s) == (2.0, 1.2)


def test_every_problem_comes_in_one_go() -> None:
    """One run of the command is enough to see all that is wrong."""
    document = {
        "job": {"kind": "x", "precision": "y"},
        "hardware": {"gpu_count": -1, "cpu_cores": "many"},
        "gpus": [{"metrics": {"util.kernel_time": {"mean": 55, "p95": -1}}}, 7],
    }
    told = problems(json.dumps(document).encode()).splitlines()
    assert len(told) == 7
    assert len(set(told)) == 7


def test_a_flood_of_problems_is_cut_and_counted() -> None:
    """A file of nonsense does not scroll the terminal away."""
    told = problems(json.dumps({"gpus": [7] * 100}).encode()).splitlines()
    assert len(told) == 21
    assert "80 more" in told[-1]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_list_says_which_profile_is_wrong(number: int) -> None:
    """In an array of profiles the index comes first."""
    items: list[Any] = [{"job": {}}, {"job": {}}, {"job": {}}]
    items[number] = {"job": {"kind": "x"}}
    assert f"[{number}].job.kind" in problems(json.dumps(items).encode())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "p.json:1:1"),
        (b"   ", "not valid JSON"),
        (b'{"job": {"name"', "p.json:1:16"),
        (b'{\n"job": 1,\n}', "remove the comma at the end of line 2"),
        (b'{"job": {"name": "a', "may be cut short"),
        (b"[]", "the list is empty"),
        (b"7", "a JSON object is wanted"),
        (b"null", "a JSON object is wanted"),
        (b'"text"', "a JSON object is wanted"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"PAR1" + bytes(range(256)), "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"job":' * 100_000, "nested too deeply"),
        (b'{"job": {"messages": ' + b'{"a":' * 200 + b"1" + b"}" * 202, "nested too deeply"),
        (b'{"job": {"parameters": ' + b"9" * 5000 + b"}}", "p.json"),
    ],
)
def test_what_is_no_profile_at_all_is_refused(data: bytes, said: str) -> None:
    """Cut, empty, binary and hostile files end in a sentence."""
    assert said in problems(data)


def test_a_byte_order_mark_is_no_obstacle() -> None:
    """Files saved on Windows are read."""
    (profile,) = parse_profiles(b'\xef\xbb\xbf{"job": {"name": "a"}}', "p.json")
    assert profile.job.name == "a"


@pytest.mark.parametrize(
    ("document", "name", "near"),
    [
        (
            {"job": {}, "usage": {"egress_gib": 4}},
            "usage.egress_gib",
            "field; did you mean egress_gib_per_",
        ),
        (of_metric("temperature_c", 71), "temperature_c", "metric; did you mean temp.core_c?"),
        (of_metric("throttle.thermal", 0.3), "throttle.thermal", "did you mean throttle.fraction?"),
        ({"job": {"carbon": 3}}, "job.carbon", "field; did you mean "),
        ({"job": {}, "wholly_new": {}}, "wholly_new", "field; did you mean "),
    ],
)
def test_a_name_that_is_not_known_is_told(document: dict[str, Any], name: str, near: str) -> None:
    """However little it is like one that is: nothing that a person wrote is dropped in silence."""
    (said,) = problems(json.dumps(document).encode()).splitlines()
    assert f"{name} is not a known " in said
    assert near in said


def test_fields_of_other_versions_are_left_alone_and_noted() -> None:
    """What gpucost wrote is read by every version: its sources carry a digest."""
    source = {"path": "gpu.csv", "sha256": "0" * 64, "later": 1}
    profile = read(
        {
            "job": {"name": "a", "carbon": 3},
            **of_metric("temperature_c", 71),
            "provenance": {"sources": [source], "notes": ["a note."]},
        }
    )
    assert profile.job.name == "a"
    first, *others = profile.provenance.notes
    assert first == "a note."
    assert [note.split()[0] for note in others] == [
        "job.carbon", "gpus[0].metrics.temperature_c", "provenance.sources[0].later",
    ]  # fmt: skip


def test_the_last_of_two_equal_keys_counts() -> None:
    """As in every JSON reader."""
    (profile,) = parse_profiles(b'{"job": {"name": "a", "name": "b"}}', "p.json")
    assert profile.job.name == "b"


def test_a_hand_written_figure_is_a_mean() -> None:
    """`"util.kernel_time": 0.22` is enough."""
    profile = read({**of_metric("util.kernel_time", 0.22), "host": {"cpu_util": 0.9}})
    assert profile.mean("util.kernel_time") == 0.22
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert profile.host.cpu_util.mean == 0.9


def test_null_is_unknown_everywhere() -> None:
    """A field that is null reads as one that is absent."""
    empty = dict.fromkeys(SECTIONS)
    assert read({**empty, "job": {"name": None, "kind": None}}) == read({"job": {}})


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"job": {"demand_by_hour": [float("nan")]}}, id="nan in free JSON"),
        pytest.param({"job": {"demand_by_hour": 1e999}}, id="infinity in free JSON"),
        pytest.param({"job": {"name": "\ud800"}}, id="half a surrogate pair"),
        pytest.param({"provenance": {"notes": 5}, "job": {}}, id="notes are a number"),
        pytest.param({"provenance": {"notes": "abc"}, "job": {}}, id="notes are one text"),
        pytest.param({"window": {"start": "0001-01-01T00:00:00+10:00"}, "job": {}}, id="year 0"),
        pytest.param(
            {"job": {"demand_by_hour": json.loads("[" * 600 + "]" * 600)}}, id="deep free JSON"
        ),
    ],
)
def test_what_is_accepted_can_be_written_and_listed(document: dict[str, Any]) -> None:
    """A document is refused with InputError, or its profile can be dumped as UTF-8 text."""
    try:
        (profile,) = parse_profiles(json.dumps(document).encode(), "p.json")
    except InputError:
        return
    dump((profile,)).encode()
    assert isinstance(profile.provenance.notes, tuple)


@given(
    st.dictionaries(st.sampled_from(SECTIONS), JSON, max_size=4)
    | st.fixed_dictionaries({"job": st.dictionaries(st.sampled_from(("name", "kind")), JSON)})
    | JSON
)
def test_any_json_is_a_profile_or_an_input_error(document: Any) -> None:
    """Nothing but InputError comes out of the reader; what it accepts is stable when rewritten."""
    try:
        data = json.dumps(document).encode()
        profiles = parse_profiles(data, "p.json")
    except InputError:
        return
    text = dump(profiles)
    assert dump(parse_profiles(text.encode(), "p.json")) == text


@given(st.binary(max_size=200))
def test_any_bytes_are_a_profile_or_an_input_error(data: bytes) -> None:
    """Random files are refused in words."""
    with suppress(InputError):
        assert parse_profiles(data, "p.json")


FRACTION = st.floats(0, 1)
POSITIVE = st.floats(1e-3, 1e9)


@given(
    busy=FRACTION,
    watts=POSITIVE,
    name=st.text(st.characters(exclude_categories=("Cs",)), max_size=10),
    start=st.datetimes().map(lambda t: t.isoformat() + "Z"),
    work=st.fixed_dictionaries({"done": POSITIVE, "total": POSITIVE, "rate_per_s": POSITIVE}),
)
def test_load_of_dump_is_the_same_profile(
    busy: float, watts: float, name: str, start: str, work: dict[str, float]
) -> None:
    """Writing rounds once; a second reading and writing changes nothing."""
    metrics = {"util.kernel_time": {"mean": busy, "max": 1}, "power.board_w": {"p95": watts}}
    document = {
        "job": {"name": name},
        "gpus": [{"index": 0, "metrics": metrics}],
        "window": {"start": start},
        "work": work,
    }
    text = dump((read(document),))
    (once,) = parse_profiles(text.encode(), "p.json")
    assert dump((once,)) == text
    (twice,) = parse_profiles(dump((once,)).encode(), "p.json")
    assert twice == once


def test_several_profiles_make_an_array() -> None:
    """One profile is an object, several are an array; both read back."""
    pair = (read({"job": {"name": "a"}}), read({"job": {"name": "b"}}))
    assert parse_profiles(dump(pair).encode(), "p.json") == pair
    assert isinstance(json.loads(dump(pair[:1])), dict)
