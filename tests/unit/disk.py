"""A disk as full as a test wants it."""

from collections import namedtuple

Usage = namedtuple("Usage", ["total", "used", "free"])
