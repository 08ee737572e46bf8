"""The notebooks that are no chapters."""

from __future__ import annotations

REFERENCE = ("accuracy", "api", "devices", "messages")
"""Notebooks to look things up in: they have no exercises, and say so in their metadata (``npulab: {page: reference}``)."""
