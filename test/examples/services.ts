/** The services that the documentation's examples call, as one server that honors idempotency keys and records its work. */
import { startUpstream, type UpstreamAnswer, type UpstreamRequest } from "../../testing/index.ts";

export async function startServices() {
  const upstream = await startUpstream();
  /** The requested work by path: one body for each idempotency key. */
  const done = new Map<string, Map<string, unknown>>();
  /** Addresses for the director's decision. */
  const decisions: string[] = [];

  const answerTo = (path: string, body: Record<string, unknown>): unknown => {
    const [, what = "", name = "", more] = path.split("/");
    switch (what) {
      case "flight":
      case "hotel":
      case "car":
        if (what === "car" && body.city === "Nowhere") return undefined;
        return { number: `${what} to ${body.city}` };
      case "mails":
        if (body.decide) decisions.push(String(body.decide));
        return {};
      case "orders":
        return { number: `order of ${body.item}` };
      case "model":
        if (name === "questions") return { questions: Array.from({ length: 10 }, (_, i) => `${body.topic} ${i}?`) };
        return { text: `${body.question} Yes.` };
      case "reports":
        return { rows: 7 };
      case "exports":
        if (name === "") return { id: "e1" };
        if (more === "release") return {};
        return { state: ++looks % 4 === 0 ? "ready" : "running", file: "e1.csv", rows: 12 };
      case "customers":
        return { added: (body.part as unknown[]).length };
      case "warehouses":
        return { tracking: `${name}-${body.order}` };
      case "invoices":
        return { paid: true };
      case "parcels":
        return { sent: true };
      case "carriers":
        return name === "broken" ? undefined : { euros: 10 + name.length };
      case "stock":
        return { left: 3 };
      case "banks":
        return name === "national" ? undefined : { dollars: 2 };
      case "site": {
        // A tree in which every page links to ten others; page 7 is missing.
        const n = Number(name);
        return n === 7 ? undefined : { links: Array.from({ length: 10 }, (_, i) => `/site/${10 * n + i + 1}`) };
      }
      default:
        return undefined;
    }
  };
  let looks = 0;

  upstream.answers(({ method, url, headers, body }: UpstreamRequest): UpstreamAnswer => {
    const key = String(headers["idempotency-key"]);
    const said = done.get(url) ?? new Map<string, unknown>();
    done.set(url, said);
    const given = body === "" ? {} : JSON.parse(body);
    if (method === "POST") said.set(key, given);
    const answer = answerTo(url, given);
    return answer === undefined ? { status: 404, after: 2 } : { body: answer, after: 2 };
  });

  return {
    url: upstream.url,
    upstream,
    decisions,
    /** The bodies of the work at matching paths, one for each idempotency key. */
    doneAt: (path: RegExp) =>
      [...done].flatMap(([url, bodies]) => (path.test(url) ? [...bodies.values()] : [])) as Record<string, unknown>[],
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}
