# Generated from _async by tools/unasync.py.
"""The synchronous client."""
