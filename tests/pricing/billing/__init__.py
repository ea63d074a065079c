"""Tests of bills: rules, quotes, and the bills of others."""
