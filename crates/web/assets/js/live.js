// Live events over one stream for all tabs. The tabs elect a leader with a lock. The leader reads
// the stream and shares its events over a channel.

export const POLL_MS = 15_000;
export const HANDOVER_MS = 60_000;
export const CLOSE_MS = 300_000;
const RETRY_MS = 60_000;
const GATHER_MS = 50;
const NAME = "foretell-live";

// One tab's part. `env` has the browser's locks, channel, stream and timers.
export class Live {
  topics = new Map();
  lastId = "";

  constructor(env) {
    this.env = env;
    this.start();
  }

  start() {
    Object.assign(this, { tabs: new Map(), waiting: new Set(), timers: {}, isPolling: true, isCurrent: false });
    this.channel = this.env.openChannel(NAME);
    this.channel.onmessage = ({ data }) => this.receive(data);
    this.timers.poll = this.env.every(POLL_MS, () => this.isPolling && this.poll());
    this.shareTopics();
    this.setHidden(this.env.isHidden());
  }

  stop() {
    this.withdraw?.();
    this.release?.();
    this.share("gone");
    for (const cancel of Object.values(this.timers)) cancel();
    this.channel.close();
    this.channel = undefined;
  }

  // The listener's members event(data), poll() and mode(isPolling) are optional.
  subscribe(topic, listener) {
    this.topics.set(topic, [...(this.topics.get(topic) ?? []), listener]);
    this.isCurrent = false;
    this.shareTopics();
  }

  shareTopics() {
    this.share("tab", { topics: [...this.topics.keys()] });
  }

  // Sends a message to all tabs, this one included.
  share(kind, fields) {
    const message = { kind, tab: this.env.id, ...fields };
    this.channel.postMessage(message);
    this.receive(message);
  }

  receive({ kind, tab, ...fields }) {
    if (kind === "tab") this.tabs.set(tab, fields.topics);
    if (kind === "gone") this.tabs.delete(tab);
    if (kind === "want") this.waiting.add(tab);
    if (kind === "leave" || kind === "gone") this.waiting.delete(tab);
    if (kind === "lead" && tab !== this.env.id) this.shareTopics();
    if (kind === "mode") this.setMode(fields);
    if (kind === "event") this.dispatch(fields);
    else if (this.release && kind !== "mode") this.lead(tab);
  }

  dispatch({ id, data }) {
    this.lastId = id;
    for (const listener of this.topics.get(data.topic) ?? []) listener.event?.(data);
  }

  listeners() {
    return [...this.topics.values()].flat();
  }

  poll() {
    if (!this.env.isHidden()) for (const listener of this.listeners()) listener.poll?.();
  }

  // After a gap, and at first, the page may have missed events: it reads the current state once.
  setMode({ isPolling, isGap }) {
    this.isPolling = isPolling;
    for (const listener of this.listeners()) listener.mode?.(isPolling);
    if (isPolling) return;
    if (isGap || !this.isCurrent) this.poll();
    this.isCurrent = true;
  }

  // Only visible tabs wait for the lock. A hidden leader hands over after a minute if a tab waits,
  // and closes the stream after five.
  setHidden(isHidden) {
    if (!this.channel) return;
    this.timers.handover?.();
    this.timers.close?.();
    this.isTired = false;
    if (!isHidden) return this.elect();
    if (!this.release) return this.withdraw?.();
    this.timers.close = this.env.after(CLOSE_MS, () => this.release?.());
    this.timers.handover = this.env.after(HANDOVER_MS, () => {
      this.isTired = true;
      this.lead();
    });
  }

  elect() {
    if (this.withdraw || this.release) return;
    const attempt = new AbortController();
    this.withdraw = () => {
      this.withdraw = undefined;
      attempt.abort();
      this.share("leave");
    };
    this.share("want");
    const hold = () => new Promise((release) => this.begin(release));
    this.env.locks?.request(NAME, { signal: attempt.signal }, hold).catch(() => {});
  }

  begin(release) {
    this.withdraw = undefined;
    this.release = () => {
      this.release = undefined;
      this.closeStream();
      release();
    };
    this.share("leave");
    this.share("lead");
  }

  // Opens the stream again if a tab has a new topic. Otherwise tells a new tab the stream's mode.
  lead(tab) {
    if (this.isTired && this.waiting.size) return this.release();
    const topics = [...new Set([...this.tabs.values()].flat())];
    if (topics.some((topic) => !this.streamed?.includes(topic))) {
      this.timers.open?.();
      this.timers.open = this.env.after(GATHER_MS, () => this.openStream(topics));
    } else if (tab && tab !== this.env.id) {
      this.share("mode", { isPolling: this.isPolling });
    }
  }

  openStream(topics) {
    this.closeStream();
    this.streamed = topics;
    const query = new URLSearchParams({ topics, ...(this.lastId && { after: this.lastId }) });
    const stream = this.env.openStream(`/app/live?${query}`);
    this.stream = stream;
    stream.onopen = () => this.share("mode", { isPolling: false, isGap: !this.lastId });
    stream.onmessage = ({ lastEventId: id, data }) => this.share("event", { id, data: JSON.parse(data) });
    stream.onerror = () => this.fail(stream.readyState === 2);
  }

  // The browser connects again by itself, unless the server rejected the stream. The server may
  // have rejected the id, so the next attempt is without it.
  fail(isRejected) {
    this.share("mode", { isPolling: true });
    if (!isRejected) return;
    this.lastId = "";
    this.timers.open = this.env.after(RETRY_MS, () => this.openStream(this.streamed));
  }

  closeStream() {
    this.timers.open?.();
    this.stream?.close();
    this.stream = this.streamed = undefined;
  }
}

let live;

// Follows a topic in this tab.
export function follow(topic, listener) {
  live ??= join();
  live.subscribe(topic, listener);
}

function join() {
  const timer = (set, clear) => (ms, run) => clear.bind(globalThis, set(run, ms));
  const tab = new Live({
    id: String(Math.random()),
    locks: navigator.locks,
    openChannel: (name) => new BroadcastChannel(name),
    openStream: (url) => new EventSource(url),
    after: timer(setTimeout, clearTimeout),
    every: timer(setInterval, clearInterval),
    isHidden: () => document.hidden,
  });
  document.addEventListener("visibilitychange", () => tab.setHidden(document.hidden));
  // A page in the back-forward cache can hold neither lock nor stream.
  addEventListener("pagehide", () => tab.stop());
  addEventListener("pageshow", ({ persisted }) => persisted && tab.start());
  return tab;
}
