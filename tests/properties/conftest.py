"""How the properties are searched: the same examples in every run, so that a failure stays one."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "properties",
    derandomize=True,
    deadline=None,
    database=None,
    # Records are large on purpose, and are built in the test rather than drawn.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("properties")
