import assert from "node:assert/strict";
import test from "node:test";

import { CLOSE_MS, HANDOVER_MS, Live, POLL_MS } from "../live.js";

// Locks, channels, streams and a clock for tabs of one browser, stepped by hand.
class Browser {
  holder = null;
  queue = [];
  channels = new Set();
  streams = [];
  timers = new Set();
  now = 0;
  polls = [];

  tab(id, isHidden = false) {
    const tab = { id, isHidden, events: [], modes: [] };
    tab.live = new Live({
      id,
      locks: { request: (_, options, hold) => this.lock(options.signal, hold) },
      openChannel: () => this.channel(),
      openStream: (url) => this.stream(url),
      after: (ms, run) => this.timer(ms, run),
      every: (ms, run) => this.timer(ms, run, ms),
      isHidden: () => tab.isHidden,
    });
    tab.follow = (topic) => tab.live.subscribe(topic, {
      event: (data) => tab.events.push(data),
      poll: () => this.polls.push(id),
      mode: (isPolling) => tab.modes.push(isPolling),
    });
    tab.hide = (hidden) => {
      tab.isHidden = hidden;
      tab.live.setHidden(hidden);
    };
    return tab;
  }

  lock(signal, hold) {
    return new Promise((resolve, reject) => {
      const entry = { hold, resolve };
      this.queue.push(entry);
      signal.addEventListener("abort", () => {
        this.queue = this.queue.filter((other) => other !== entry);
        reject(new DOMException("aborted", "AbortError"));
      });
      this.grant();
    });
  }

  grant() {
    if (this.holder || !this.queue.length) return;
    this.holder = this.queue.shift();
    const done = this.holder.hold();
    done.then(() => {
      this.holder.resolve();
      this.holder = null;
      this.grant();
    });
  }

  channel() {
    const channel = {
      postMessage: (data) => {
        for (const other of this.channels) if (other !== channel) other.onmessage({ data });
      },
      close: () => this.channels.delete(channel),
    };
    this.channels.add(channel);
    return channel;
  }

  stream(url) {
    const stream = { url, isOpen: true, readyState: 1, close: () => (stream.isOpen = false) };
    this.streams.push(stream);
    return stream;
  }

  get open() {
    return this.streams.filter((stream) => stream.isOpen);
  }

  timer(ms, run, every) {
    const timer = { at: this.now + ms, run, every };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  // Lets promises run, then every timer that is due, in order.
  async pass(ms) {
    const end = this.now + ms;
    for (;;) {
      await new Promise(setImmediate);
      const due = [...this.timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.now = due.at;
      if (due.every) due.at += due.every;
      else this.timers.delete(due);
      due.run();
    }
    this.now = end;
  }

  send(id, data) {
    assert.equal(this.open.length, 1);
    this.open[0].onmessage({ lastEventId: id, data: JSON.stringify(data) });
  }
}

async function openTabs(count) {
  const browser = new Browser();
  const tabs = [];
  for (let i = 0; i < count; i++) {
    const tab = browser.tab(`tab ${i}`);
    tab.follow(`m:${i}`);
    tabs.push(tab);
  }
  await browser.pass(100);
  browser.open[0].onopen();
  return { browser, tabs };
}

const topicsOf = (stream) => new URL(stream.url, "http://localhost").searchParams.get("topics").split(",").sort();
const afterOf = (stream) => new URL(stream.url, "http://localhost").searchParams.get("after");

test("eight tabs read one stream with all their topics", async () => {
  const { browser, tabs } = await openTabs(8);
  assert.equal(browser.open.length, 1);
  assert.deepEqual(topicsOf(browser.open[0]), tabs.map((_, i) => `m:${i}`));
  browser.send("7", { topic: "m:5", price: 1 });
  assert.deepEqual(tabs.map((tab) => tab.events.length), [0, 0, 0, 0, 0, 1, 0, 0]);
});

test("if the leader's tab is closed, another tab resumes after the last shared id", async () => {
  const { browser, tabs } = await openTabs(3);
  browser.send("41", { topic: "m:2" });
  tabs[0].live.stop();
  await browser.pass(100);
  assert.equal(browser.open.length, 1);
  assert.equal(afterOf(browser.open[0]), "41");
  assert.deepEqual(topicsOf(browser.open[0]), ["m:1", "m:2"]);
});

test("a new leader does not read the topics of closed tabs", async () => {
  const { browser, tabs } = await openTabs(3);
  tabs[2].live.stop();
  tabs[0].live.stop();
  await browser.pass(100);
  assert.deepEqual(topicsOf(browser.open[0]), ["m:1"]);
});

test("a topic of a new tab reopens the stream, and a known topic does not", async () => {
  const { browser } = await openTabs(1);
  const known = browser.tab("known");
  known.follow("m:0");
  await browser.pass(100);
  assert.equal(browser.streams.length, 1);
  assert.equal(known.modes.at(-1), false);
  assert.deepEqual(browser.polls, ["tab 0", "known"]);
  browser.tab("new").follow("u");
  await browser.pass(100);
  assert.deepEqual(topicsOf(browser.open[0]), ["m:0", "u"]);
  assert.equal(browser.streams.length, 2);
});

test("a tab reads the current state once when its stream opens, and again only after a gap", async () => {
  const { browser } = await openTabs(1);
  assert.deepEqual(browser.polls, ["tab 0"]);
  browser.send("9", { topic: "m:0" });
  browser.open[0].onerror();
  browser.open[0].onopen();
  assert.equal(browser.polls.length, 1);
  browser.open[0].readyState = 2;
  browser.open[0].onerror();
  await browser.pass(60_000);
  const polled = browser.polls.length;
  assert.equal(afterOf(browser.open[0]), null);
  browser.open[0].onopen();
  assert.equal(browser.polls.length, polled + 1);
});

test("a leader that is hidden for a minute hands over to a visible tab", async () => {
  const { browser, tabs } = await openTabs(3);
  tabs[1].hide(true);
  tabs[0].hide(true);
  await browser.pass(HANDOVER_MS - 1);
  assert.ok(tabs[0].live.release);
  await browser.pass(2);
  assert.ok(!tabs[0].live.release && !tabs[1].live.release && tabs[2].live.release);
  await browser.pass(100);
  assert.equal(browser.open.length, 1);
});

test("a tab that becomes visible takes over from a leader that has been hidden for a minute", async () => {
  const { browser, tabs } = await openTabs(2);
  tabs[0].hide(true);
  tabs[1].hide(true);
  await browser.pass(2 * HANDOVER_MS);
  assert.ok(tabs[0].live.release);
  tabs[1].hide(false);
  await browser.pass(100);
  assert.ok(!tabs[0].live.release && tabs[1].live.release);
});

test("the stream is closed when all tabs have been hidden for five minutes, and opened again", async () => {
  const { browser, tabs } = await openTabs(2);
  browser.send("3", { topic: "m:0" });
  for (const tab of tabs) tab.hide(true);
  await browser.pass(CLOSE_MS - 1);
  assert.equal(browser.open.length, 1);
  await browser.pass(2);
  assert.equal(browser.open.length, 0);
  tabs[1].hide(false);
  await browser.pass(100);
  assert.equal(afterOf(browser.open[0]), "3");
});

test("without a stream, visible tabs poll every 15 seconds", async () => {
  const { browser, tabs } = await openTabs(2);
  tabs[1].hide(true);
  browser.polls = [];
  browser.open[0].onerror();
  assert.deepEqual(tabs.map((tab) => tab.modes.at(-1)), [true, true]);
  await browser.pass(2 * POLL_MS);
  assert.deepEqual(browser.polls, ["tab 0", "tab 0"]);
  browser.open[0].onopen();
  browser.polls = [];
  await browser.pass(2 * POLL_MS);
  assert.deepEqual(browser.polls, []);
});

test("a page that returns from the back-forward cache joins again", async () => {
  const { browser, tabs } = await openTabs(1);
  tabs[0].live.stop();
  assert.equal(browser.open.length, 0);
  tabs[0].live.start();
  await browser.pass(100);
  assert.equal(browser.open.length, 1);
});
