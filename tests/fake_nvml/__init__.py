"""A stand-in for the NVIDIA driver's library (NVML), so that the real pynvml runs without a GPU.

`nvml.c` is compiled by the tests and loaded in another process through LD_LIBRARY_PATH. What it
says is a `Scenario` (scenario.py): devices with what they offer (machines.py), and a trace, a table
of rows in slot units. The fixture `fake_nvml` (fixture.py, known to every test) turns a scenario
into the environment of that process:

    def test_it(fake_nvml):
        scenario = Scenario(
            devices=machine(1, h100),
            rows=rows("0", (5.0, {"util.kernel_time": 0.35, "power.board_w": 310.0}), (5.0, {...})),
            period_s=10.0,
        )
        subprocess.run([...], env=fake_nvml(scenario))
        assert measured == pytest.approx(scenario.means("0")["power.board_w"], rel=0.01)
"""
