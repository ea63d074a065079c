"""A run of which nothing is proved: never called ready, asked again, given up after its time."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from providers.journal.journal import terms_of
from providers.lifecycle.launch import launch
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import carry_out, judge
from providers.lifecycle.session import Clock, Session
from providers.ssh.connection import Login, Proof, Status
from tests.providers.fakes.memory import MemoryCloud
from tests.providers.launches import PENDING, READY, Said, a_session, a_spec, no_wait

UNREACHED = Proof(deadline=None, clock=None, fault="cannot be reached", answered=False)
UNARMED = ("nothing watches the deadline",) * 9


class Deaf(Said):
    """A way into machines that do not answer."""

    def proof(self, _: object) -> Proof:
        """No answer."""
        return UNREACHED


@pytest.fixture
def cloud() -> MemoryCloud:
    """An empty provider."""
    return MemoryCloud()


def _later(session: Session, login: Login | None, seconds: float) -> Session:
    now = session.clock.now
    later = Clock(now=lambda: now() + timedelta(seconds=seconds), sleep=no_wait)
    return replace(session, clock=later, login=lambda _: login)


def _reap(session: Session) -> str:
    (verdict,) = judge(session, survey(session), "ada", all_owners=False)
    carry_out(session, verdict)
    return verdict.action


@pytest.mark.parametrize(
    ("login", "seconds", "state"),
    [
        (Said(READY), 1, "ready"),
        (Said(PENDING), 600, "not-proved"),
        (Deaf(READY), 600, "not-proved"),
        (None, 600, "not-proved"),
        (Said(READY, faults=UNARMED), 1, "not-proved"),
        (Said(READY, faults=UNARMED), 600, "ended"),
        (Said(Status(state="failed", reason="7 GPUs")), 600, "ended"),
        (Deaf(READY), 2 * 3600, "ended"),
    ],
    ids=["proved", "not set up", "deaf", "no key", "young", "unarmed", "unusable", "late"],
)
def test_reap_asks_for_the_proof(
    cloud: MemoryCloud, tmp_path: Path, login: Login | None, seconds: float, state: str
) -> None:
    """With the proof it is ready; what answers and has none for as long as a launch waits, ends."""
    session = a_session(cloud, tmp_path)
    done = launch(session, a_spec(regions=("here",)), None)
    assert done.state == "not-proved"
    assert _reap(_later(session, login, seconds)) == ("prove" if seconds < 3600 else "remove")
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.state == state
    assert bool(cloud.things) == (state != "ended")


@pytest.mark.parametrize(
    ("login", "state"),
    [(Said(READY), "ready"), (Said(READY, faults=UNARMED), "not-proved")],
    ids=["proved", "unarmed"],
)
def test_what_is_adopted_is_asked_and_never_ended_early(
    cloud: MemoryCloud, tmp_path: Path, login: Login, state: str
) -> None:
    """Found alive with an empty journal: ready with its proof, else kept, and that is said."""
    done = launch(a_session(cloud, tmp_path / "lost"), a_spec(regions=("here",)), None)
    said: list[str] = []
    session = replace(a_session(cloud, tmp_path / "empty"), say=said.append)
    assert _reap(_later(session, login, 1200)) == "adopt"
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert (run.state, run.self_destroy) == (state, None)
    assert any("nothing proves" in one for one in said) == (state != "ready")
    _reap(_later(session, login, 2400))
    assert cloud.things


def test_what_need_not_end_itself_is_only_asked_how_far_it_is(
    cloud: MemoryCloud, tmp_path: Path
) -> None:
    """With --no-self-destroy a machine that is set up is ready; no proof is asked for."""
    session = a_session(cloud, tmp_path)
    done = launch(session, a_spec(regions=("here",), self_destroy=False), None)
    assert (done.state, done.self_destroy) == ("not-proved", False)
    unarmed = Said(READY, faults=UNARMED)
    _reap(_later(session, unarmed, 1))
    run = session.journal.deployment(done.marks.run)
    assert run is not None
    assert run.state == "ready"


def test_the_terms_of_a_launch_are_kept(cloud: MemoryCloud, tmp_path: Path) -> None:
    """The journal has the cap."""
    session = a_session(cloud, tmp_path)
    first = launch(session, a_spec(regions=("here",)), None)
    assert first.terms == terms_of(a_spec())
    assert first.terms.max_usd == a_spec().max_usd
