// A crosshair, ranges without reload, and live points on a chart that the server has drawn.

import { formatTime } from "./page.js";
import { follow } from "./live.js";
import { fetchPart } from "./part.js";

const MARGIN = 8;

// Parses a line of steps, "M0 75HxVy…", into its points [x, y]: from x on, the price is at y.
export function parseSteps(path) {
  const numbers = [...path.matchAll(/[MHV ]([\d.]+)/g)].map(([part, number]) => [part[0], Number(number)]);
  const points = [[numbers[0][1], numbers[1][1]]];
  for (let i = 2; i + 1 < numbers.length; i += 2) points.push([numbers[i][1], numbers[i + 1][1]]);
  return points;
}

// Returns the y of the line at x.
export const heightAt = (points, x) => points.findLast((point) => point[0] <= x)?.[1] ?? points[0][1];

export class Chart {
  constructor(figure) {
    const { from, to, top, bottom = 0 } = figure.dataset;
    this.figure = figure;
    this.svg = figure.querySelector("svg.plot");
    [, , this.width, this.height] = this.svg.getAttribute("viewBox").split(" ").map(Number);
    Object.assign(this, { from: Number(from), to: Number(to), top: Number(top), bottom: Number(bottom) });
    this.lines = [...this.svg.querySelectorAll("path.line")];
    this.readout = figure.querySelector("[data-readout]");
    this.crosshair = document.createElementNS(this.svg.namespaceURI, "path");
    this.crosshair.setAttribute("class", "cross");
    this.svg.append(this.crosshair);
  }

  get span() {
    return this.height - 2 * MARGIN;
  }

  percentAt(y) {
    return (this.top - ((this.top - this.bottom) * (y - MARGIN)) / this.span).toFixed(1);
  }

  // Shows the prices at x.
  point(x) {
    this.x = Math.min(Math.max(x, 0), this.width);
    this.crosshair.setAttribute("d", `M${this.x} 0V${this.height}`);
    const time = new Date(this.from + ((this.to - this.from) * this.x) / this.width);
    const prices = this.lines.map((line) => {
      const y = heightAt(parseSteps(line.getAttribute("d")), this.x);
      return `${line.dataset.label} ${this.percentAt(y)}%`;
    });
    const text = [formatTime(time, "datetime"), ...prices].join(" · ");
    this.readout.textContent = text;
    this.svg.setAttribute("aria-valuetext", text);
    this.svg.setAttribute("aria-valuenow", Math.round(this.x));
  }

  // Moves the crosshair to the next change in this direction.
  step(direction) {
    const changes = this.lines.flatMap((line) => parseSteps(line.getAttribute("d")).map(([x]) => x));
    const next = [0, ...changes, this.width].filter((x) => (x - (this.x ?? this.width)) * direction > 0);
    if (next.length) this.point(direction > 0 ? Math.min(...next) : Math.max(...next));
  }

  // Ends each line at its newest price. Returns false if the price is beyond the scale, or the time
  // beyond one percent of the axis: then the server must draw the chart again.
  extend(outcomes, now) {
    if (now - this.to > (this.to - this.from) / 100) return false;
    return this.lines.every((line) => {
      const price = outcomes.find(({ index }) => index === Number(line.dataset.outcome))?.price;
      if (price === undefined) return true;
      const y = (MARGIN + (this.span * (this.top - price * 100)) / (this.top - this.bottom)).toFixed(1);
      const path = line.getAttribute("d").replace(/H[\d.]+(V[\d.]+)?$/, "") + `H${this.width}V${y}`;
      line.setAttribute("d", path);
      line.nextElementSibling.setAttribute("d", `M${this.width} ${y}h.01`);
      const area = line.previousElementSibling;
      if (area?.matches(".area")) area.setAttribute("d", `${path}V${this.height - MARGIN}H0Z`);
      return y >= MARGIN && y <= this.height - MARGIN;
    });
  }
}

const KEYS = {
  ArrowLeft: (chart) => chart.step(-1),
  ArrowRight: (chart) => chart.step(1),
  Home: (chart) => chart.point(0),
  End: (chart) => chart.point(chart.width),
};

// Prepares the figure's present content, which a range replaces.
function prepare(figure) {
  const chart = new Chart(figure);
  const { svg } = chart;
  const attributes = {
    tabindex: 0,
    role: "slider",
    "aria-valuemin": 0,
    "aria-valuemax": chart.width,
    "aria-valuenow": chart.width,
    "aria-label": figure.getAttribute("aria-label") ?? "Chart",
  };
  // The content of an image is not exposed to screen readers.
  figure.removeAttribute("role");
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  svg.addEventListener("pointermove", ({ clientX }) => {
    const { left, width } = svg.getBoundingClientRect();
    chart.point(((clientX - left) / width) * chart.width);
  });
  svg.addEventListener("focus", () => chart.point(chart.x ?? chart.width));
  svg.addEventListener("keydown", (event) => {
    if (!KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key](chart);
  });
  return chart;
}

export function start(figure) {
  let chart = prepare(figure);
  let url = location.href;
  let loading;
  const load = async () => {
    const wanted = (loading = url);
    const fresh = await fetchPart(figure.id, wanted).finally(() => wanted === url && (loading = undefined));
    if (wanted !== url) return;
    figure.replaceChildren(...fresh.childNodes);
    Object.assign(figure.dataset, fresh.dataset);
    chart = prepare(figure);
  };
  figure.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-range]");
    if (!link) return;
    event.preventDefault();
    url = link.href;
    history.replaceState(null, "", url);
    load().then(() => figure.querySelector("a[aria-current]")?.focus(), () => location.assign(url));
  });
  follow(`m:${figure.dataset.market}`, {
    event: ({ outcomes = [] }) => {
      if (!chart.extend(outcomes, Date.now()) && !loading) load().catch(() => {});
    },
  });
}
