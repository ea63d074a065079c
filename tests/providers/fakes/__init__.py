"""Fakes of providers: servers on this machine that the real SDKs talk to."""
