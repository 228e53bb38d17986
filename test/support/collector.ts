import { json } from "node:stream/consumers";
import { serveHttp } from "../../testing/stack/http-server.ts";

export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

/** Starts a collector, which gathers the spans that are sent to it by OTLP over HTTP, as JSON. */
export async function startCollector() {
  const spans: Span[] = [];
  const services = new Set<string | undefined>();
  const server = await serveHttp(async (req, res) => {
    type Export = { resourceSpans: { resource: Pick<Span, "attributes">; scopeSpans: { spans: Span[] }[] }[] };
    const body = (await json(req)) as Export;
    for (const { resource, scopeSpans } of body.resourceSpans) {
      services.add(attribute(resource, "service.name"));
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    }
    res.setHeader("Content-Type", "application/json").end("{}");
  });
  return { spans, services, url: server.url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

export const attribute = ({ attributes }: Pick<Span, "attributes">, key: string) =>
  attributes.find((attribute) => attribute.key === key)?.value.stringValue;
