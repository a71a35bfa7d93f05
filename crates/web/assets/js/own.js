// What changes with the person's own trades: a receipt loads its next state, and other pages offer to.

import { follow } from "./live.js";
import { get } from "./request.js";

export function start(element) {
  const { trade, status } = element.dataset;
  const offer = () => (element.hidden = false);
  const compare = async () => {
    const { status: now } = await get(`/app/trades/${trade}`).catch(() => ({ status }));
    if (now !== status) location.reload();
  };
  follow("u", trade ? { event: compare, poll: compare } : { event: offer });
}
