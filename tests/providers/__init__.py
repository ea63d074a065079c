"""Tests of providers: real SDKs against fakes on this machine."""
