"""The labelled set is what it claims to be."""

import pytest

from planner.diagnosis.rules import RULES
from tests.diagnosis.labelled import LabelledCase, cases

CODES = {rule.code for rule in RULES}
each_case = pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)


def test_the_set_is_large_enough() -> None:
    """At least 60 cases, at least 20 of them published recordings, names unique."""
    assert len(cases()) >= 60
    assert sum(case.recorded for case in cases()) >= 20
    assert len({case.name for case in cases()}) == len(cases())


def test_every_code_is_labelled() -> None:
    """Each finding code is the verdict of at least two cases."""
    labels = [case.label for case in cases()]
    assert {code for code in CODES if labels.count(code) >= 2} == CODES


@each_case
def test_a_label_has_a_reason_and_known_codes(case: LabelledCase) -> None:
    """A label comes with the sentence that an expert would defend it with."""
    assert len(case.why) > 20
    assert {case.label, *case.also, *case.absent} <= CODES
    assert case.label not in case.absent


@pytest.mark.parametrize("case", [c for c in cases() if not c.recorded], ids=lambda c: c.name)
def test_a_case_of_ours_can_be_read(case: LabelledCase) -> None:
    """Readings and series make a profile of the kind that they state."""
    profile = case.profile(None)
    assert profile is not None
    assert profile.job.kind == case.given["job"]["kind"]
    assert profile.gpus
