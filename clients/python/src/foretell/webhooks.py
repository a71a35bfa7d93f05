"""Verifies the deliveries of webhooks.

>>> event = verify(body, headers["X-Service-Signature"], secret)   # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, cast

__all__ = ["Delivery", "VerificationError", "sign", "verify"]


class Delivery(TypedDict):
    """The body of a delivery. The service may add members."""

    id: str
    """The event, the same in each of its deliveries."""
    type: str
    apiVersion: str
    createdAt: str
    data: dict[str, Any]


class VerificationError(ValueError):
    """A delivery that must be answered with 400 and ignored."""

    def __init__(self, reason: Literal["malformed", "stale", "different"]) -> None:
        super().__init__(f"the signature of the delivery is {reason}")
        self.reason = reason
        """`malformed`: the header or body cannot be read; `stale`: the time is outside the tolerance; `different`:
        no signature matches."""


def sign(body: bytes, secret: str, *, now: float | None = None) -> str:
    """The header `X-Service-Signature` of a delivery, for tests of a receiver. `now` is in seconds since 1970."""
    now_ms = time.time_ns() // 1_000_000 if now is None else round(now * 1000)
    return f"t={now_ms},v1={_hmac(secret, b'%d.' % now_ms + body)}"


def verify(
    body: bytes, header: str | None, secret: str | Sequence[str], tolerance: float = 300, *, now: float | None = None
) -> Delivery:
    """Returns the event of a delivery whose signature verifies; raises `VerificationError` otherwise.

    `body` must be the bytes as they arrived. `header` is `X-Service-Signature`. `secret` is the key's webhook secret
    as it was issued, or several of them during a rotation. `tolerance` is how many seconds the time of the signature
    may differ from this machine's clock, or from `now` in seconds since 1970.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets or not all(secrets):
        raise ValueError("verify needs at least one secret, and none may be empty")
    elements = [element.strip().partition("=") for element in (header or "").split(",")]
    times = [value for name, _, value in elements if name == "t"]
    given = [value.encode(errors="replace") for name, _, value in elements if name == "v1"]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit() and len(times[0]) <= 15):
        raise VerificationError("malformed")
    now_ms = time.time_ns() // 1_000_000 if now is None else round(now * 1000)
    if abs(now_ms - int(times[0])) > tolerance * 1000:
        raise VerificationError("stale")
    signed = times[0].encode() + b"." + body
    expected = [_hmac(one, signed).encode() for one in secrets]
    matches = [hmac.compare_digest(one, value) for one in expected for value in given]
    if not any(matches):
        raise VerificationError("different")
    return _parse(body)


def _hmac(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _parse(body: bytes) -> Delivery:
    try:
        event: Any = json.loads(body)
    except ValueError:
        raise VerificationError("malformed") from None
    if not isinstance(event, dict):
        raise VerificationError("malformed")
    return cast(Delivery, event)
