// Creates trades whose names depend only on the arguments, and prints a line for each.
import { Foretell } from "@foretell/client";

const [prefix, count] = process.argv.slice(2);
const client = new Foretell({ baseUrl: process.env.FORETELL_PROXY, apiKey: process.env.FORETELL_API_KEY, firstPauseMs: 10 });
let next = 0;
const work = async () => {
  while (next < Number(count)) {
    const clientRequestId = `${prefix}${next++}`;
    const trade = { marketId: process.env.FORETELL_MARKET, outcomeIndex: 0, side: "buy", amount: "0.05", maxSlippageBps: 10_000 };
    await client.trades.create({ ...trade, clientRequestId });
    console.log(clientRequestId);
  }
};
await Promise.all(Array.from({ length: 4 }, work));
