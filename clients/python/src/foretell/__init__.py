"""The client of Foretell's trading API and public read API.

```python
from foretell import Foretell, Usdc

with Foretell("https://api.foretell.example", key) as client:
    trade = client.trades.create_and_wait(market_id, 0, "buy", Usdc("25.00"), max_slippage_bps=200)
    print(trade["status"], trade["tokensOut"])
```

`Foretell` blocks, `AsyncForetell` is for asyncio; both have the same methods. The objects of the API are in
`foretell.types` and `foretell.public_types`, the errors in `foretell.errors`.
"""

from ._async.client import AsyncForetell
from ._async.events import AsyncEvents, AsyncEventStream
from ._async.pages import AsyncPager
from ._async.trades import AsyncTrades
from ._response import Page, RateLimit, Response, response_of
from ._sse import StreamMessage
from ._sync.client import Foretell
from ._sync.events import Events, EventStream
from ._sync.pages import Pager
from ._sync.trades import Trades
from ._trades import TradeOptions
from ._version import __version__
from .errors import Authentication, Conflict, ForetellError, RateLimited, Refused, Unavailable
from .money import Usdc, Wad

__all__ = [
    "AsyncEventStream",
    "AsyncEvents",
    "AsyncForetell",
    "AsyncPager",
    "AsyncTrades",
    "Authentication",
    "Conflict",
    "EventStream",
    "Events",
    "Foretell",
    "ForetellError",
    "Page",
    "Pager",
    "RateLimit",
    "RateLimited",
    "Refused",
    "Response",
    "StreamMessage",
    "TradeOptions",
    "Trades",
    "Unavailable",
    "Usdc",
    "Wad",
    "__version__",
    "response_of",
]
