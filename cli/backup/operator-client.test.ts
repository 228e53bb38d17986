import { expect, test } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { OperatorClient } from "./operator-client.ts";

test.each([
  [200, '{"status":"failed","error":"boom"}', "", { status: "failed", error: "boom" }],
  [404, '{"error":"No job has this name in the log."}', "", "No job has this name in the log."],
  [401, '{"error":"Sign in."}', "", expect.stringContaining("Set OPERATOR_TOKEN")],
  [401, "Unauthorized", "wrong", "The server does not know the token in OPERATOR_TOKEN."],
])("of the edge's answer %i %s to the token %j, an operator reads %j", async (status, body, token, read) => {
  await using server = await serveHttp((_, response) => void response.writeHead(status).end(body));
  const answer = new OperatorClient(server.url, token).ask("GET", "/operate/job");
  expect(await answer.catch(({ message }: Error) => message)).toEqual(read);
});
