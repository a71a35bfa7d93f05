"""A market maker: quotes a bid and an ask around its own estimate, within an inventory limit, and survives `kill -9`.

    python3 bot.py MARKET=0.60 --state maker.json      # a fixed estimate of the probability of outcome 0
    python3 bot.py MARKET MARKET --state maker.json    # estimates that follow the prices slowly

FORETELL_BASE_URL and FORETELL_API_KEY (or FORETELL_API_KEY_FILE) name the service and the key. README.md has commands
that run against a demonstration. It trades the two outcomes of a market; markets with more outcomes are rejected.

Each cycle, for each market:

1. The estimate moves against the inventory, so that a large position is not made larger.
2. An outcome is sold if its price is above the ask, and bought if it is below the bid. The order has a limit: it is not
   executed at a worse price, or after its deadline.
3. **The order is stored in the state file before it is sent**, and its name depends only on that file. A killed bot
   sends the stored order again under the same name: the service returns the trade that it has, or creates it now, or
   rejects it because its deadline has passed. In no case are there two trades.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
import uuid
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from foretell import Conflict, Foretell, RateLimited, Refused, Unavailable, Usdc, Wad

# An order that the service got later than this is not executed: its price is old.
LIFETIME = timedelta(seconds=30)
# The service rejects trades of less than 0.01 USDC.
SMALLEST = Decimal("0.02")


class State:
    """Everything that the bot must remember if it is killed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        # A new bot has a new name, so that its orders are never taken for those of another one.
        new = {"bot": f"maker-{uuid.uuid4()}", "number": 0, "order": None, "completed": 0, "estimates": {}, "start": {}}
        self.values: dict[str, Any] = json.loads(file.read_text()) if file.exists() else new

    def save(self, **changes: Any) -> None:
        """Replaces the file at once: after a kill it has the old or the new values, never a part."""
        self.values.update(changes)
        with open(f"{self.file}.new", "w") as out:
            json.dump(self.values, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        os.replace(out.name, self.file)

    @property
    def name(self) -> str:
        """The name of the current order. It depends only on the state."""
        return f"{self.values['bot']}:{self.values['number']}"


def finish(client: Foretell, state: State) -> None:
    """Sends the stored order, perhaps again, and waits for its end."""
    order = state.values["order"]
    bound = {"min_tokens_out" if order["side"] == "buy" else "max_tokens_in": Wad(order["tokens"])}
    options = {"client_request_id": state.name, "deadline": order["deadline"], **bound}
    what = (order["market"], order["outcome"], order["side"], Usdc(order["usdc"]))
    try:
        trade = client.trades.create_and_wait(*what, **options)
    except (Conflict, Refused) as error:
        if error.submission != "not_submitted":
            raise
        # The service looks for a trade with this name before it rejects one, so there is none.
        print(f"{state.name}: not traded, {error.code}", flush=True)
        state.save(order=None)
        return
    completed = state.values["completed"] + (trade["status"] == "completed")
    state.save(order=None, completed=completed)
    tokens = Wad.from_atomic(trade["tokensOut"] or 0)
    amounts = f"{tokens:.4f} tokens for {Usdc.from_atomic(trade['usdcAmount'] or 0)} USDC"
    print(f"{state.name}: {trade['status']} {order['side']} of outcome {order['outcome']}, {amounts}", flush=True)


def decide(client: Foretell, market: Any, held: list[Decimal], estimate: Decimal, args: Any) -> dict[str, Any] | None:
    """The order that this market needs now, or None."""
    half = args.half_spread
    fair = estimate - half * (held[0] - held[1]) / args.max_position
    prices = [Decimal(str(outcome["price"])) for outcome in market["outcomes"]]
    fee = Decimal(market["feeBps"]) / 10_000

    def order(outcome: int, side: str, usdc: Usdc, limit: Decimal) -> dict[str, Any]:
        deadline = (datetime.now(timezone.utc) + LIFETIME).isoformat()
        amounts = {"usdc": str(usdc), "tokens": str(Wad.from_decimal(limit))}
        return {"market": market["id"], "outcome": outcome, "side": side, **amounts, "deadline": deadline}

    # What is held is sold first, so that no USDC is bound in both outcomes.
    for outcome, value in enumerate((fair, 1 - fair)):
        ask = max(value + half, Decimal("0.01"))
        if prices[outcome] * (1 - fee) > ask and held[outcome] * ask >= SMALLEST:
            tokens = min(held[outcome], args.size.to_decimal() / ask)
            quote = client.quotes.sell(market["id"], outcome, Wad.from_decimal(tokens))
            usdc = Usdc.from_atomic(int(quote["usdcOut"]) - 1)
            if usdc.to_decimal() >= tokens * ask:
                return order(outcome, "sell", usdc, tokens)
    for outcome, value in enumerate((fair, 1 - fair)):
        bid = value - half
        if prices[outcome] / (1 - fee) < bid:
            tokens = Wad.from_atomic(client.quotes.buy(market["id"], outcome, args.size)["tokensOut"]).to_decimal()
            after = held[outcome] - held[1 - outcome] + tokens
            if tokens * bid >= args.size.to_decimal() and after <= args.max_position:
                return order(outcome, "buy", args.size, args.size.to_decimal() / bid)
    return None


def read_positions(client: Foretell, market_id: str) -> tuple[list[Decimal], Usdc]:
    """The tokens of both outcomes, and the profit of both positions at current prices."""
    held, profit = [Decimal(0), Decimal(0)], Usdc(0)
    for position in client.portfolio.positions(market_id=market_id):
        held[position["outcomeIndex"]] = Wad.from_atomic(position["tokens"]).to_decimal()
        profit += Usdc.from_atomic(int(position["realizedPnl"] or 0) + int(position["unrealizedPnl"] or 0))
    return held, profit


def quote_once(client: Foretell, state: State, args: argparse.Namespace) -> None:
    """Looks at each market once, and makes at most one trade in each."""
    for market_id, fixed in args.markets:
        market = client.markets.get(market_id)
        if len(market["outcomes"]) != 2:
            raise SystemExit(f"{market_id} must have two outcomes")
        if market["status"] != "OPEN":
            continue
        held, profit = read_positions(client, market_id)
        state.values["start"].setdefault(market_id, str(profit))
        price = Decimal(str(market["outcomes"][0]["price"]))
        last = Decimal(state.values["estimates"].get(market_id, price))
        estimate = fixed if fixed is not None else last + (price - last) * args.follow
        state.values["estimates"][market_id] = str(round(estimate, 9))
        if order := decide(client, market, held, estimate, args):
            state.save(number=state.values["number"] + 1, order=order)
            finish(client, state)
        if args.trades is not None and state.values["completed"] >= args.trades:
            return


def report(client: Foretell, state: State, args: argparse.Namespace) -> None:
    """Prints what the bot has done since its state file was made."""
    total = Usdc(0)
    for market_id, _ in args.markets:
        held, profit = read_positions(client, market_id)
        change = profit - Usdc(state.values["start"].get(market_id, str(profit)))
        total += change
        print(f"{market_id}: inventory {held[0] - held[1]:.4f} tokens of outcome 0, profit {change} USDC")
    print(f"{state.values['completed']} trades of {state.values['number']} orders, profit {total} USDC")


def market_of(text: str) -> tuple[str, Decimal | None]:
    market_id, _, estimate = text.partition("=")
    return market_id, Decimal(estimate) if estimate else None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Quotes around an estimate.")
    parser.add_argument("markets", nargs="+", type=market_of, metavar="MARKET[=ESTIMATE]")
    parser.add_argument("--state", type=Path, required=True, help="the file that makes restarts safe")
    parser.add_argument("--half-spread", type=Decimal, default=Decimal("0.02"))
    parser.add_argument("--size", type=Usdc, default=Usdc("10"), help="USDC of one order")
    parser.add_argument("--max-position", type=Decimal, default=Decimal(100), help="tokens, of either outcome")
    parser.add_argument("--follow", type=Decimal, default=Decimal("0.02"), help="the share of a price's change")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two cycles")
    parser.add_argument("--trades", type=int, help="stop after this many trades")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    return parser.parse_args()


def main() -> None:
    args = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state, ends = State(args.state), time.monotonic() + args.minutes * 60
    with Foretell.from_env() as client:
        try:
            while (args.trades is None or state.values["completed"] < args.trades) and time.monotonic() < ends:
                try:
                    if state.values["order"] is not None:
                        finish(client, state)
                    else:
                        quote_once(client, state, args)
                except (RateLimited, Unavailable) as error:
                    # The client has retried already. A stored order is sent again in the next cycle.
                    print(f"waiting: {error}", flush=True)
                time.sleep(args.pause)
        except KeyboardInterrupt:
            pass
        report(client, state, args)


if __name__ == "__main__":
    main()
