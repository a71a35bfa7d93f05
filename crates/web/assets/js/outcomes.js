// The search in a market's outcomes: finds while the user types.

import { fetchPart } from "./part.js";
import { pause } from "./request.js";

const TYPING_MS = 150;

// Calls `show(text)` for the newest text after a pause in typing. Returns the input's listener.
export function finder(show, wait = pause) {
  let newest = 0;
  return async (text) => {
    const number = ++newest;
    const isCurrent = () => number === newest;
    await wait(TYPING_MS);
    if (isCurrent()) await show(text, isCurrent);
  };
}

export function start(section) {
  const form = section.querySelector("form");
  const { find } = form.elements;
  const urlOf = (text) => `${form.getAttribute("action").split("#")[0]}?${new URLSearchParams({ find: text })}`;
  const type = finder(async (text, isCurrent) => {
    const part = await fetchPart("found", urlOf(text));
    if (isCurrent()) section.querySelector("#found").replaceChildren(...part.childNodes);
  });
  // Without an answer, the button still searches.
  find.addEventListener("input", () => type(find.value).catch(() => {}));
}
