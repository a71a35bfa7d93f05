"""The asynchronous client. tools/unasync.py makes the synchronous one out of this package."""
