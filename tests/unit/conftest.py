"""Fixtures that several packages' tests share."""

from tiny_study import tiny_files

__all__ = ["tiny_files"]
