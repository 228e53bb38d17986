import { createServer } from "node:http";
import { expect, test } from "vitest";
import { replay } from "../../../testing/index.ts";
import { titlesRun } from "./titles.run.ts";

test("every page's title is found, wherever the worker dies", async () => {
  const site = createServer((request, response) => response.end(`<title>Page ${request.url}</title>`));
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { port } = site.address() as { port: number };
  const urls = ["/a", "/b", "/c"].map((path) => `http://127.0.0.1:${port}${path}`);
  const { result } = await replay(titlesRun, { urls });
  expect(result).toEqual({ titles: ["Page /a", "Page /b", "Page /c"] });
  site.close();
});
