// What every page has.

const YEAR_S = 31_536_000;

export function announce(text, near) {
  const area = near?.closest(":has([data-announce])") ?? document;
  const status = area.querySelector("[data-announce]");
  if (status) status.textContent = text;
}

async function copy({ previousElementSibling: source }) {
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  announce("Copied");
}

const open = (button) => document.getElementById(button.dataset.open).showModal();

function chooseTheme({ value, form }, event) {
  event.preventDefault();
  const root = document.documentElement;
  if (value === "auto") root.removeAttribute("data-theme");
  else root.dataset.theme = value;
  document.cookie = `theme=${value};path=/;max-age=${YEAR_S};samesite=lax`;
  for (const button of form.elements) button.ariaPressed = button.value === value;
}

const CLICKS = { "[data-copy]": copy, "[data-open]": open, "button[name=theme]": chooseTheme };

function click(event) {
  for (const [selector, act] of Object.entries(CLICKS)) {
    const button = event.target.closest(selector);
    if (button) act(button, event);
  }
}

const TIME = { timeStyle: "short" };
const DATE = { dateStyle: "medium" };
const STYLES = { date: DATE, datetime: { ...DATE, ...TIME } };

function showTimes() {
  for (const time of document.querySelectorAll("time[data-time]")) {
    time.title = time.dateTime;
    time.textContent = formatTime(new Date(time.dateTime), time.dataset.time);
  }
}

export function formatTime(date, style) {
  return new Intl.DateTimeFormat(document.documentElement.lang || "en", STYLES[style] ?? TIME).format(date);
}

let prefix = "";

function press(event) {
  const { key, target, altKey, ctrlKey, metaKey } = event;
  const isTyping = target.closest("input,select,textarea,dialog,[contenteditable],[role=slider]");
  const isOff = document.cookie.split("; ").includes("shortcuts=off");
  if (isTyping || isOff || altKey || ctrlKey || metaKey) return;
  const find = (keys) => document.querySelector(`[data-shortcut="${CSS.escape(keys)}"]`);
  const element = find(prefix + key) ?? find(key);
  prefix = key === "g" ? "g " : "";
  if (!element) return;
  event.preventDefault();
  if (element.matches("input")) element.focus();
  else element.click();
}

export function start() {
  document.addEventListener("click", click);
  document.addEventListener("keydown", press);
  showTimes();
}
