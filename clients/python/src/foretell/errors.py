"""Errors, one class for each family.

| Class | Statuses | What to do |
| --- | --- | --- |
| `Authentication` | 401, 403 | use another key, scope or address, or resume the key |
| `RateLimited` | 429 | wait for `retry_after` seconds |
| `Refused` | 400, 404, 410 and other 4xx | correct the request |
| `Conflict` | 409 | look at `code`: the state of the market, account or trade does not allow it |
| `Unavailable` | 5xx, no answer | try again later, with the same idempotency key |

Codes are an open set. Treat a code that you do not know like its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ._response import RateLimit

__all__ = ["Authentication", "Conflict", "ForetellError", "RateLimited", "Refused", "Unavailable"]

Submission = Literal["not_submitted", "submitted", "unknown"]


class ForetellError(Exception):
    """An error of the service, or the lack of an answer."""

    code: str
    """A stable identifier such as `INSUFFICIENT_BALANCE`. Without a problem document: `HTTP_502` and so on;
    `CONNECTION_FAILED` if no answer arrived; `UNREADABLE_ANSWER` if a success cannot be read; `WAIT_TIMED_OUT` if a
    trade did not end in time."""
    status: int | None
    """The HTTP status, or None if no answer arrived."""
    detail: str
    """Text for people."""
    request_id: str | None
    """Quote it when you report a problem."""
    doc_url: str | None
    """The address of the code's page."""
    submission: Submission | None
    """Of writes: if anything was stored. After `unknown`, repeat the call with the same idempotency key."""
    trade_id: str | None
    """The trade that the error is about."""
    retry_after: float | None
    """Seconds to wait before the next attempt."""
    extensions: Mapping[str, Any]
    """More members of the problem document."""
    rate_limit: RateLimit | None
    """The state of the request counter."""
    attempts: int
    """The number of requests that were sent."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        doc_url: str | None = None,
        retry_after: float | None = None,
        extensions: Mapping[str, Any] | None = None,
        rate_limit: RateLimit | None = None,
        submission: Submission | None = None,
        trade_id: str | None = None,
    ) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.doc_url = doc_url
        self.retry_after = retry_after
        self.extensions = extensions or {}
        self.rate_limit = rate_limit
        self.submission = submission or _submission(self.extensions.get("submission"))
        found = self.extensions.get("tradeId")
        self.trade_id = trade_id or (found if isinstance(found, str) else None)
        self.attempts = 1
        # True if an attempt of this call may have been stored without an answer.
        self._is_uncertain = False
        # True if the service cannot have seen the request.
        self._is_before_sending = False

    def __str__(self) -> str:
        """The code, the detail, the first wrong fields, and the id of the request."""
        fields = "".join(f"; {field}" for field in self._field_errors())
        about = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code}: {self.detail}{fields}{about}"

    def _field_errors(self) -> list[str]:
        found = self.extensions.get("errors")
        errors = [error for error in found if isinstance(error, dict)] if isinstance(found, list) else []
        return [f"{error.get('pointer')} {error.get('detail')}" for error in errors[:5]]


class Authentication(ForetellError):
    """The key is missing, unknown, revoked, expired or paused, or may not do this from here."""


class RateLimited(ForetellError):
    """Too many requests, replays or rotations."""


class Refused(ForetellError):
    """The request has to be corrected."""


class Conflict(ForetellError):
    """The state of the market, account or trade does not allow the request."""


class Unavailable(ForetellError):
    """The service did not answer, or could not."""


def family(status: int | None) -> type[ForetellError]:
    """The class of the errors with this status."""
    if status in (401, 403):
        return Authentication
    if status == 409:
        return Conflict
    if status == 429:
        return RateLimited
    return Refused if status is not None and 400 <= status < 500 else Unavailable


def _submission(value: Any) -> Submission | None:
    # A word that this version does not know says nothing certain.
    if value == "not_submitted" or value == "submitted":  # noqa: PLR1714 -- narrows the type
        return value  # type: ignore[no-any-return]
    return "unknown" if value is not None else None
