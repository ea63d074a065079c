"""Starts Python on the day that GPUCOST_TEST_DAY names: on the path of a command under test."""

import os

import time_machine

time_machine.travel(f"{os.environ['GPUCOST_TEST_DAY']}T12:00:00+00:00", tick=True).start()
