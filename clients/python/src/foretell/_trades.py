"""The rules of trades: requests, names and ends."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict

from ._core import Request, instant, post
from .money import Usdc, Wad
from .types import AmountType, Trade, TradeStatusChange

ENDS = ("completed", "failed", "rejected")
END_EVENTS = "trade.completed,trade.failed,trade.rejected"
# Conflicts of the name: a trade that has it is another one.
NAME_CONFLICTS = ("IDEMPOTENCY_KEY_CONFLICT", "CLIENT_REQUEST_ID_CONFLICT")
_LONGEST_CLIENT_REQUEST_ID = 128


class Progress:
    """Reports each status of a trade once, in order."""

    def __init__(self, on_status: Callable[[TradeStatusChange], object] | None) -> None:
        self._on_status = on_status
        self._count = 0
        self.events = END_EVENTS if on_status is None else f"{END_EVENTS},trade.status-changed"

    def report(self, trade: Trade) -> Trade:
        """Reports what is new in a trade, and returns it."""
        if self._on_status is not None:
            for change in trade["statusHistory"][self._count :]:
                self._count += 1
                self._on_status(change)
        return trade


def has_ended(trade: Mapping[str, Any]) -> bool:
    """True if the trade's status never changes again."""
    return trade.get("status") in ENDS


def names_of(idempotency_key: str | None, client_request_id: str | None) -> tuple[str, str | None]:
    """The idempotency key and the client request id of a trade.

    A name that the caller omits is the other one, so that every trade can be looked up, unless it is too long.
    """
    key = idempotency_key or client_request_id or str(uuid.uuid4())
    if client_request_id is None and len(key) <= _LONGEST_CLIENT_REQUEST_ID:
        return key, key
    return key, client_request_id


class TradeOptions(TypedDict, total=False):
    """The optional members of a trade."""

    amount_type: AmountType | None
    """`usdc`, `tokens`, or `all` for a sell of everything. By default `tokens` for a `Wad`, else `usdc`."""
    min_tokens_out: Wad | None
    """Of a buy: the fewest tokens to accept."""
    max_tokens_in: Wad | None
    """Of a sell: the most tokens to give."""
    max_slippage_bps: int | None
    """The most that the price may be worse than the quote at acceptance, in hundredths of a percent."""
    deadline: datetime | str | None
    """The trade is not executed after it."""
    metadata: Mapping[str, str] | None
    """Strings of your own, returned with the trade."""


def body_of(
    market_id: str, outcome_index: int, side: str, amount: str | Usdc | Wad | None, options: TradeOptions
) -> dict[str, Any]:
    """The members of a creation, except its name."""
    unknown = options.keys() - TradeOptions.__annotations__.keys()
    if unknown:
        # A misspelled bound would cost money.
        raise TypeError(f"a trade has no {', '.join(sorted(unknown))}")
    amount_type, deadline, metadata = options.get("amount_type"), options.get("deadline"), options.get("metadata")
    return {
        "marketId": market_id,
        "outcomeIndex": outcome_index,
        "side": side,
        "amount": _amount(amount, amount_type),
        "amountType": amount_type or ("tokens" if isinstance(amount, Wad) else None),
        "minTokensOut": _tokens("min_tokens_out", options.get("min_tokens_out")),
        "maxTokensIn": _tokens("max_tokens_in", options.get("max_tokens_in")),
        "maxSlippageBps": options.get("max_slippage_bps"),
        "deadline": None if deadline is None else instant(deadline),
        "metadata": None if metadata is None else dict(metadata),
    }


def _tokens(name: str, tokens: Wad | None) -> str | None:
    if tokens is None:
        return None
    if not isinstance(tokens, Wad):
        raise TypeError(f"{name} must be a Wad, not {type(tokens).__name__}")
    return str(tokens.atomic)


def _amount(amount: str | Usdc | Wad | None, amount_type: str | None) -> str | None:
    if amount is None or isinstance(amount, str):
        return amount
    if not isinstance(amount, Usdc | Wad):
        raise TypeError(f"amount must be a Usdc, a Wad or a decimal string, not {type(amount).__name__}")
    if amount_type == ("tokens" if isinstance(amount, Usdc) else "usdc"):
        raise ValueError(f"amount_type {amount_type!r} does not fit an amount of {type(amount).__name__}")
    return str(amount)


def creation(body: Mapping[str, Any], key: str, client_request_id: str | None) -> Request:
    """The request that creates a trade. It is the same bytes in every attempt."""
    return post("/v1/trades", {**body, "clientRequestId": client_request_id}, name=key)


def is_same_trade(body: Mapping[str, Any], trade: Mapping[str, Any]) -> bool:
    """True if a trade that was found by its name is the one that `body` asks for."""
    if any(trade.get(member) != body[member] for member in ("marketId", "outcomeIndex", "side")):
        return False
    if trade.get("amountType") != (body["amountType"] or "usdc"):
        return False
    return _number(trade.get("amount")) == _number(body["amount"])


def _number(amount: Any) -> Decimal | None:
    return Decimal(amount) if isinstance(amount, str) and re.fullmatch(r"[0-9]{1,40}(\.[0-9]{1,40})?", amount) else None
