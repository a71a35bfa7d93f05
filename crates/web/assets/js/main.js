// The script of every page. README.md describes the attributes.

import { start } from "./page.js";

const MODULES = {
  act: () => import("./act.js"),
  chart: () => import("./chart.js"),
  file: () => import("./file.js"),
  market: () => import("./market.js"),
  outcomes: () => import("./outcomes.js"),
  own: () => import("./own.js"),
  passkey: () => import("./passkey.js"),
  ticket: () => import("./ticket.js"),
  wallet: () => import("./wallet_text.js"),
};

async function load(element) {
  for (const name of element.dataset.module.split(" ")) (await MODULES[name]()).start(element);
}

// A button that is pressed before the module has loaded is pressed again after it. Of an empty
// element, the <details> around it counts.
function loadOnUse(element) {
  const area = element.closest("details") ?? element;
  const loaded = new AbortController();
  let loading;
  const use = (event) => {
    loading ??= load(element).finally(() => loaded.abort());
    const button = event.type === "click" && event.target.closest("button");
    if (!button) return;
    event.preventDefault();
    loading.finally(() => button.click());
  };
  for (const kind of ["focusin", "pointerover", "click"]) {
    area.addEventListener(kind, use, { signal: loaded.signal });
  }
}

start();
if (document.querySelector("[data-keep]") || "form" in sessionStorage) {
  import("./forms.js").then((forms) => forms.start());
}
for (const element of document.querySelectorAll("[data-module]")) {
  if ("lazy" in element.dataset) loadOnUse(element);
  else load(element);
}
