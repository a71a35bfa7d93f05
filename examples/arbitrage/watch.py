"""An arbitrage watcher: looks for sets of outcomes that cost less than they pay, and buys them with `--trade`.

    python3 watch.py MARKET:0+MARKET:1 --journal arbitrage.json

A set is a list of outcomes of which exactly one pays 1 USDC for each token, such as "Yes" of one market and "No" of
another one that asks the same question. One token of each is worth 1 USDC in the end, so a set that costs less than
that, with fees, is a profit. The prices of one market always sum to 1, so each set must span several markets.

FORETELL_BASE_URL and FORETELL_API_KEY (or FORETELL_API_KEY_FILE) name the service and the key. README.md has commands
that run against a demonstration.

The legs of a set are separate trades: the price of one can move while another is executed. Therefore:

- each leg has a bound, and even if all of them are used up, the set does not cost more than it pays;
- **the plan is written to the journal before the first leg is sent**, and the names of the legs depend only on it. A
  watcher that was killed sends the whole plan again, and each leg is traded once;
- if a leg is not executed, the legs that were are sold again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

from foretell import AsyncForetell, Conflict, ForetellError, Refused, Usdc, Wad
from foretell.types import Trade

Leg = tuple[str, int]


def cost_of(market: Any, outcome: int, tokens: float) -> float:
    """USDC for `tokens` of an outcome, with the fee: the market maker's formula, as an estimate."""
    b, price, fee = int(market["liquidity"]) / 1e6, market["outcomes"][outcome]["price"], market["feeBps"] / 10_000
    return float(b * math.log1p(price * math.expm1(tokens / b)) / (1 - fee))


def best_size(legs: list[tuple[Any, int]], largest: float) -> float:
    """The number of sets with the highest profit: until one more set would cost what it pays."""

    def next_costs(tokens: float) -> float:
        step = 1e-3
        return sum(cost_of(*leg, tokens + step) - cost_of(*leg, tokens) for leg in legs) / step

    low, high = 0.0, largest
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if next_costs(middle) < 1 else (low, middle)
    return low


async def examine(client: AsyncForetell, legs: list[Leg], args: argparse.Namespace) -> dict[str, Any] | None:
    """Prints what the set costs. Returns the plan for buying it, if that is a profit."""
    markets = await asyncio.gather(*(client.markets.get(market) for market, _ in legs))
    pairs = [(market, outcome) for market, (_, outcome) in zip(markets, legs, strict=True)]
    prices = [market["outcomes"][outcome]["price"] for market, outcome in pairs]
    text = f"{' + '.join(f'{price:.4f}' for price in prices)} = {sum(prices):.4f}"
    if any(market["status"] != "OPEN" for market in markets) or (size := best_size(pairs, args.largest)) < 1:
        print(f"{text}: nothing to gain", flush=True)
        return None
    # The estimate only chooses what to spend. The contracts' own figures say what it brings.
    costs = [Usdc(f"{cost_of(*pair, size):.6f}") for pair in pairs]
    buys = zip(legs, costs, strict=True)
    quotes = await asyncio.gather(*(client.quotes.buy(market, outcome, usdc) for (market, outcome), usdc in buys))
    sets = min(int(quote["tokensOut"]) for quote in quotes) / Decimal(10**18)
    cost = sum(costs, Usdc(0)).to_decimal()
    print(f"{text}: {sets:.2f} sets cost {cost:.2f} USDC, profit {sets - cost:.2f} USDC", flush=True)
    if sets - cost < args.profit:
        return None
    # Half of the profit may be lost to prices that move in the meantime.
    least = str(Wad.from_decimal((sets + cost) / 2))
    planned = [{"market": leg[0], "outcome": leg[1], "usdc": str(usdc)} for leg, usdc in zip(legs, costs, strict=True)]
    return {"name": f"arbitrage-{uuid.uuid4()}", "least": least, "legs": planned}


def store(journal: Path, plan: dict[str, Any] | None) -> None:
    """Replaces the journal at once: after a kill it has the old or the new plan."""
    with open(f"{journal}.new", "w") as out:
        json.dump(plan, out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(out.name, journal)


async def trade(client: AsyncForetell, name: str, leg: dict[str, Any], side: Any, **order: Any) -> Trade | None:
    """Makes one trade of a plan, or finds the one that an earlier run made. None if it was not executed."""
    about = f"{side} {leg['market']}:{leg['outcome']}"
    try:
        made = await client.trades.create_and_wait(leg["market"], leg["outcome"], side, client_request_id=name, **order)
    except (Conflict, Refused) as error:
        if error.submission != "not_submitted":
            raise
        # The service looks for a trade with this name first, so there is none.
        print(f"{about}: {error.code}", flush=True)
        return None
    print(f"{about}: {made['status']}, {Usdc.from_atomic(made['usdcAmount'] or 0)} USDC", flush=True)
    return made if made["status"] == "completed" else None


async def carry_out(client: AsyncForetell, journal: Path, plan: dict[str, Any]) -> None:
    """Buys every leg of the plan, one after the other, or sells what was bought."""
    bought: list[Trade] = []
    for number, leg in enumerate(plan["legs"]):
        if number == plan.get("given_up"):
            break
        order: dict[str, Any] = {"amount": Usdc(leg["usdc"]), "min_tokens_out": Wad(plan["least"])}
        made = await trade(client, f"{plan['name']}:buy:{number}", leg, "buy", **order)
        if made is None:
            # Stored, so that no later run buys this leg after the others were sold.
            plan["given_up"] = number
            store(journal, plan)
            break
        bought.append(made)
    for number, made in enumerate(bought if "given_up" in plan else []):
        # Amounts have at most six decimals.
        tokens = Wad.from_atomic(int(made["tokensOut"] or 0) // 10**12 * 10**12)
        order = {"amount": tokens, "max_slippage_bps": 10_000}
        if await trade(client, f"{plan['name']}:sell:{number}", plan["legs"][number], "sell", **order) is None:
            raise SystemExit(f"{tokens} tokens of leg {number} are left: sell them, then delete {journal}")
    store(journal, None)


async def follow(client: AsyncForetell, market: str, changed: asyncio.Event) -> None:
    """Reports each change of a market, for as long as the program runs."""
    after = None
    while True:
        try:
            async for message in client.public.stream(market, after=after):
                after = message.id or after
                if message.event in ("market", "trade", "status"):
                    changed.set()
        except ForetellError as error:
            print(f"stream of {market}: {error}", flush=True)
        await asyncio.sleep(1)


async def main(args: argparse.Namespace) -> None:
    async with AsyncForetell.from_env() as client:
        if args.journal.exists() and (plan := json.loads(args.journal.read_text())):
            print(f"continuing {plan['name']}", flush=True)
            await carry_out(client, args.journal, plan)
        changed = asyncio.Event()
        changed.set()
        markets = {market for legs in args.sets for market, _ in legs}
        streams = [asyncio.create_task(follow(client, market, changed)) for market in markets]
        while True:
            await changed.wait()
            changed.clear()
            plans = [await examine(client, legs, args) for legs in args.sets]
            for plan in filter(None, plans if args.trade else []):
                store(args.journal, plan)
                await carry_out(client, args.journal, plan)
            if args.once:
                break
        for stream in streams:
            stream.cancel()


def parse() -> argparse.Namespace:
    def legs(text: str) -> list[Leg]:
        found = [leg.rsplit(":", 1) for leg in text.split("+")]
        return [(market, int(outcome)) for market, outcome in found]

    parser = argparse.ArgumentParser(description="Looks for sets of outcomes that cost less than they pay.")
    parser.add_argument("sets", nargs="+", type=legs, metavar="MARKET:OUTCOME+MARKET:OUTCOME")
    parser.add_argument("--journal", type=Path, required=True, help="the file that makes restarts safe")
    parser.add_argument("--trade", action="store_true", help="buy what is a profit; otherwise only print it")
    parser.add_argument("--profit", type=Decimal, default=Decimal("0.50"), help="the least profit in USDC")
    parser.add_argument("--largest", type=float, default=500.0, help="the largest number of sets of one plan")
    parser.add_argument("--once", action="store_true", help="look once, and end")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(parse()))
