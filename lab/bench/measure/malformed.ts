/** The edge's CPU for malformed requests beside a `ping` with the same content, which it only reads. */
import { type Malformed, malformed, SHAPES } from "../../../test/limits/malformed.ts";
import { JSON_HEADERS } from "../../../test/limits/support.ts";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { budgeted } from "../report/budgets.ts";
import type { Figure } from "../report/figures.ts";
import { type Bench, pidOf } from "../setup/bench.ts";
import { ask } from "../setup/mcp.ts";

/** The length of the content, in characters, in the full and in the short form. */
const [LONG, SHORT] = [400_000, 200_000];

/** The shapes of the short form. */
const IN_SHORT = ["an object of many names", "nested lists"];

/** Below this ratio a request is not measured again. */
const CHEAP = 3;

export async function measureMalformed(bench: Bench, short: boolean): Promise<Figure[]> {
  await using edge = await bench.serve("product", { WAIT_SECONDS: "1" });
  const pid = pidOf(edge);
  const post = async (path: string, headers: Record<string, string>, body: string) => {
    const before = cpuSeconds(pid);
    const response = await fetch(edge.url + path, { method: "POST", headers, body });
    await response.arrayBuffer();
    return cpuSeconds(pid) - before;
  };

  /**
   * The ratio of one request, measured in turns: other load disturbs both. A garbage collection costs as much as several
   * requests and falls on one of them, so an expensive request is sent up to twenty times.
   */
  async function ratioOf({ path, headers, body, ping }: Malformed): Promise<number> {
    const [text, reference] = [JSON.stringify(body), JSON.stringify(ping)];
    let [ofBody, ofPing] = [0, 0];
    for (let n = 0; n < 20 && ofBody >= CHEAP * ofPing; n++) {
      ofBody += await post(path, headers, text);
      ofPing += await post("/mcp", JSON_HEADERS, reference);
    }
    return ofBody / ofPing;
  }

  const { tools } = await ask(`${edge.url}/mcp`, { method: "tools/list" });
  const figures: Figure[] = [];
  for (const shape of short ? IN_SHORT : SHAPES) {
    let most = { what: "", ratio: 0 };
    for (const request of malformed(shape, short ? SHORT : LONG, tools)) {
      const ratio = await ratioOf(request);
      if (ratio > most.ratio) most = { what: request.what, ratio };
    }
    console.error(`       ${most.what}: ${most.ratio.toFixed(1)} times a ping`);
    figures.push(budgeted(shape, Math.round(100 * most.ratio), "CPU in percent of a ping's"));
  }
  return figures;
}
