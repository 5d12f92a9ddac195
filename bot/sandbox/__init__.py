"""A local Slack workspace: strict, in memory, spoken to over real HTTP.

Tests and the newcomer's demo page use it. Nothing in the product's own path imports it.
"""

from __future__ import annotations
