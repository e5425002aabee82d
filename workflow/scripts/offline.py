"""Imported first by every script but the two that retrieve: no job asks the hub for anything."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
