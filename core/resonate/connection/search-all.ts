import type { ResonateClient, Search } from "./client.ts";
import type { PromiseRecord } from "./protocol.ts";

const PAGE_SIZE = 500;

/** All promises that a search finds, page by page. @throws {SearchRefused} */
export async function* pagesOf(client: ResonateClient, search: Search): AsyncGenerator<PromiseRecord[], void> {
  for (let cursor: string | undefined; ;) {
    const page = await client.search({ limit: PAGE_SIZE, ...search, ...(cursor !== undefined && { cursor }) });
    yield page.promises;
    // Some servers send null instead of no cursor.
    cursor = page.cursor ?? undefined;
    if (cursor === undefined) return;
  }
}
