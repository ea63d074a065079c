"""Property tests are never timed: a busy machine must not fail them."""

from hypothesis import settings

settings.register_profile("gpucost", deadline=None)
settings.load_profile("gpucost")
