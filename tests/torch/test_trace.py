"""`profile --trace`: PyTorch's own profiler around some steps of an unchanged program."""

from tests.torch.conftest import Runner


def test_twenty_steps_are_traced_and_the_output_stays(program: Runner) -> None:
    """The heaviest operator of a matrix product is named; the traced steps have no length."""
    done = program("fit.py", "long", apply={}, more={"trace": 5})
    plain = program("fit.py", "long", probe=False)
    assert (done.out, done.err) == (plain.out, plain.err)
    assert done.of("odd") == []
    (trace,) = done.of("trace")
    assert trace["steps"] == 5
    assert trace["device"] == "cpu"
    operators = [row for row in trace["rows"] if row[0] == "operator"]
    assert 1 <= len(operators) <= 5
    assert all(row[1].startswith("aten::") for row in operators)
    assert (
        sum(line["n"] for line in done.of("step") if line["step_s"] is None) == 1 + 5
    )  # the first
