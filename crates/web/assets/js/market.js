// Live prices of a market.

import { formatTime } from "./page.js";
import { follow } from "./live.js";

// Formats a price in whole percents, as the server does. Only settled markets show 0% and 100%.
export function percent(price, isSettled) {
  const millionths = Math.round(price * 1e6);
  if (!isSettled && millionths < 5_000) return "<1%";
  if (!isSettled && millionths >= 995_000) return ">99%";
  return `${Math.floor((millionths + 5_000) / 10_000)}%`;
}

export function start(element) {
  const { market, status, poll } = element.dataset;
  const each = (name, change) => element.querySelectorAll(`[data-${name}]`).forEach(change);
  const show = (state) => {
    const isSettled = (state.status ?? status) === "RESOLVED" || state.status === "CANCELLED";
    for (const { index, price } of state.outcomes ?? []) {
      each(`price="${index}"`, (text) => (text.textContent = percent(price, isSettled)));
      each(`bar="${index}"`, (bar) => bar.setAttribute("width", `${price * 100}%`));
    }
    // The texts of another status are the server's. The page offers to reload.
    if (state.status && state.status !== status) each("changed", (note) => (note.hidden = false));
    each("updated", (text) => (text.textContent = formatTime(new Date(state.at ?? Date.now()), "time")));
  };
  let events = 0;
  const read = async () => {
    const before = events;
    const answer = await fetch(poll, { cache: "no-cache" });
    const body = await answer.json();
    // An event that arrived meanwhile is newer.
    if (answer.ok && events === before) show(body.market);
  };
  follow(`m:${market}`, {
    event: (state) => ++events && show(state),
    poll: () => poll && read().catch(() => {}),
    mode: (isPolling) => each("stale", (note) => (note.hidden = !isPolling)),
  });
}
