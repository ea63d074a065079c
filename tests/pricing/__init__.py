"""Tests of `pricing`: money, hardware, offers, rules, bills."""
