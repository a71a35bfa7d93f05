"""Signatures of requests."""

from __future__ import annotations

import hashlib
import hmac

__all__ = ["sign"]


def sign(key: str, time_ms: int, method: str, path: str, body: bytes) -> str:
    """The header `X-Service-Signature` of a request. `path` is as it is sent, without the query."""
    signed = f"{time_ms}.{method.upper()}.{path}.".encode() + body
    return f"t={time_ms},v1={hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()}"
