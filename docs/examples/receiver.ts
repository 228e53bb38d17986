import { createHmac, timingSafeEqual } from "node:crypto";

/** Answers a request of a web hook whose subscription has `secret`. `keep` stores the event, which may come twice. */
export async function receive(request: Request, secret: string, keep: (event: object) => Promise<void>) {
  const body = await request.text();
  const [id, at, signatures] = ["id", "timestamp", "signature"].map((name) => request.headers.get(`webhook-${name}`));
  const hmac = createHmac("sha256", Buffer.from(secret.replace("whsec_", ""), "base64"));
  const expected = Buffer.from(`v1,${hmac.update(`${id}.${at}.${body}`).digest("base64")}`);
  const isOurs = (signature: string) =>
    signature.length === expected.length && timingSafeEqual(Buffer.from(signature), expected);
  const isFresh = Math.abs(Date.now() / 1_000 - Number(at)) < 300;
  if (!isFresh || !signatures?.split(" ").some(isOurs)) return new Response(null, { status: 401 });
  const event = JSON.parse(body);
  if (event.type === "verification") return Response.json({ challenge: event.challenge });
  await keep(event); // before the answer: an event that was answered with 2xx is not sent again
  return new Response(null, { status: 204 });
}
