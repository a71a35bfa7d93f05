/** One event of a stream of server-sent events. */
export interface ServerSentEvent {
  id: string | undefined;
  name: string;
  data: string;
}

const MAX_PENDING = 4 * 1024 * 1024;

/** Parses server-sent events from chunks that end anywhere. Unfinished events are dropped. */
export class EventParser {
  readonly #decoder = new TextDecoder();
  #pending = "";
  #id: string | undefined;
  #name = "";
  #data: string[] = [];

  /** Returns the events that the chunk completes. */
  push(chunk: Uint8Array): ServerSentEvent[] {
    this.#pending += this.#decoder.decode(chunk, { stream: true });
    if (this.#pending.length > MAX_PENDING) throw new Error("a line of the stream is too long");
    const events: ServerSentEvent[] = [];
    for (;;) {
      const end = /\r\n|\n|\r/.exec(this.#pending);
      // The next chunk may begin with the LF of this CR.
      if (!end || (end[0] === "\r" && end.index === this.#pending.length - 1)) return events;
      const line = this.#pending.slice(0, end.index);
      this.#pending = this.#pending.slice(end.index + end[0].length);
      const event = this.#line(line);
      if (event) events.push(event);
    }
  }

  #line(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #finish(): ServerSentEvent | undefined {
    const event = { id: this.#id, name: this.#name || "message", data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#name = "";
    this.#data = [];
    return isEmpty ? undefined : event;
  }
}
