"""One name, one unit, one meaning for each metric of a profile."""

import pytest

from planner.profile.kinds import SLOTS

CONTRACT = """
util.kernel_time util.mem_controller util.sm_active util.sm_occupancy util.tensor_active
util.fp32_active util.dram_active util.encoder util.decoder mem.used_gib mem.process_gib
power.board_w power.limit_w temp.core_c throttle.fraction clock.sm_mhz io.pcie_rx_mib_s
io.pcie_tx_mib_s io.nvlink_rx_mib_s io.nvlink_tx_mib_s energy.total_j
"""


def test_the_slots_are_the_contracts() -> None:
    """Every slot of the contract is there, under its own name."""
    assert set(CONTRACT.split()) <= set(SLOTS)
    assert all(slot.name == name and slot.meaning for name, slot in SLOTS.items())


@pytest.mark.parametrize("name", sorted(SLOTS))
def test_fractions_end_at_one(name: str) -> None:
    """A fraction runs from 0 to 1; only temperature goes below zero; other units have no top."""
    slot = SLOTS[name]
    assert (slot.unit == "fraction") == (slot.high == 1.0)
    assert slot.low == (-50.0 if slot.unit == "°C" else 0.0)
