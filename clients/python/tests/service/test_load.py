"""Many creations through faults, and a program that is killed between two of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, MARKET, SERVICE, TABLE, Proxy, new_client, settings_of

LOAD = TABLE["load"]
CREATES = int(os.environ.get("FORETELL_CREATES") or LOAD["creates"])
KILLED = 100
PROGRAM = Path(__file__).parent / "program.py"


def trades_named(prefix: str) -> Counter[str]:
    """How many trades of the service have each of these names."""
    names: Counter[str] = Counter()
    with new_client("sync", SERVICE) as client:
        for trade in client.trades.list(limit=100):
            name = trade["clientRequestId"]
            if name is not None and name.startswith("first-"):
                # Every trade of the test is newer than this one.
                if name == f"first-{prefix}":
                    return names
            elif name is not None and name.startswith(prefix):
                names[name] += 1
    raise AssertionError("the first trade is missing")


def begin(prefix: str) -> None:
    """Creates the trade before which no trade of the test is."""
    with new_client("sync", SERVICE) as client:
        client.trades.create(MARKET, 0, "buy", LOAD["amount"], client_request_id=f"first-{prefix}")


def create_in_threads(prefix: str, settings: dict[str, Any]) -> list[str]:
    with new_client("sync", Proxy.address, **settings) as client, ThreadPoolExecutor(LOAD["workers"]) as pool:

        def create(number: int) -> str:
            name = f"{prefix}{number}"
            trade_id: str = client.trades.create(MARKET, 0, "buy", LOAD["amount"], client_request_id=name)["id"]
            return trade_id

        return list(pool.map(create, range(CREATES)))


def create_in_tasks(prefix: str, settings: dict[str, Any]) -> list[str]:
    async def main() -> list[str]:
        async with new_client("async", Proxy.address, **settings) as client:
            numbers = iter(range(CREATES))
            ids: list[str] = []

            async def work() -> None:
                for number in numbers:
                    name = f"{prefix}{number}"
                    trade = await client.trades.create(MARKET, 0, "buy", LOAD["amount"], client_request_id=name)
                    ids.append(trade["id"])

            await asyncio.gather(*(work() for _ in range(LOAD["workers"])))
            return ids

    return asyncio.run(main())


@pytest.mark.parametrize("create_all", [create_in_threads, create_in_tasks])
def test_as_many_creations_through_faults_make_as_many_trades(create_all: Any, proxy: Proxy) -> None:
    prefix = f"load-{uuid.uuid4()}-"
    begin(prefix)
    proxy.set_rules(LOAD["rules"])
    ids = create_all(prefix, settings_of(LOAD["options"]))
    requests = len(proxy.log())
    names = trades_named(prefix)
    print(f"{create_all.__name__}: {CREATES} creates, {requests} requests, {names.total()} trades")
    assert len(set(ids)) == len(ids) == CREATES
    assert requests > CREATES
    assert names.total() == len(names) == CREATES


def test_a_program_that_is_killed_and_run_again_makes_each_trade_once(proxy: Proxy) -> None:
    prefix = f"kill-{uuid.uuid4()}-"
    begin(prefix)
    proxy.set_rules(LOAD["rules"])
    environment = {**os.environ, "FORETELL_API_KEY": KEY}
    command = [sys.executable, str(PROGRAM), Proxy.address, MARKET, LOAD["amount"], prefix, str(KILLED)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        created = [program.stdout.readline() for _ in range(KILLED // 3)]
        program.kill()
    assert program.returncode == -9
    assert all(created)
    before = trades_named(prefix).total()
    assert KILLED // 3 <= before < KILLED
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    names = trades_named(prefix)
    print(f"{KILLED} creates, killed after {before} trades, {names.total()} in the end")
    assert names.total() == len(names) == KILLED
