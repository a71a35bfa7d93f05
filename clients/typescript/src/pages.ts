import { remember } from "./response.js";
import type { Transport } from "./transport.js";
import { thrown } from "./trades.js";

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The `cursor` of the next page, or null. */
  readonly cursor: string | null;
}

/** A list, read page by page while it is iterated. */
export interface Pages<T> extends AsyncIterable<T> {
  /** Iterates over pages instead of items. */
  pages(): AsyncGenerator<Page<T>, void, undefined>;
}

/** Reads a list. Each iteration starts at the beginning. */
export function pagesOf<T>(transport: Transport, path: string, query: object): Pages<T> {
  async function* pages(): AsyncGenerator<Page<T>, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const given = cursor === undefined ? query : { ...query, cursor };
      const answer = await thrown(transport.send({ method: "GET", path, query: given, member: "data", isRepeatable: true }));
      const { data, pagination } = answer.json as { data: T[]; pagination?: { cursor?: string | null; hasMore?: boolean } };
      cursor = pagination?.hasMore === true ? (pagination.cursor ?? null) : null;
      yield remember({ items: data, cursor }, answer.info);
    } while (cursor !== null);
  }
  async function* items(): AsyncGenerator<T, void, undefined> {
    for await (const page of pages()) yield* page.items;
  }
  return { pages, [Symbol.asyncIterator]: items };
}
