"""Creates numbered trades: program.py ADDRESS MARKET AMOUNT PREFIX COUNT."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from foretell import Foretell

address, market, amount, prefix, count = sys.argv[1:]
with Foretell(address, os.environ["FORETELL_API_KEY"], backoff=0.01) as client, ThreadPoolExecutor(4) as pool:

    def create(number: int) -> str:
        """Creates one trade. Its name is the same in every run."""
        return client.trades.create(market, 0, "buy", amount, client_request_id=f"{prefix}{number}")["id"]

    for trade_id in pool.map(create, range(int(count))):
        print(trade_id, flush=True)
