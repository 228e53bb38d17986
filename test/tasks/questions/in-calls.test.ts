/** Clients of 2026-07-28 that can ask their user but do not know tasks get a job's questions in the answer to the call. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rpc } from "../../support/rpc.ts";
import type { Stack } from "../../support/stack.ts";
import { accept, startTaskStack } from "../support.ts";

let stack: Stack;
beforeAll(async () => {
  stack = await startTaskStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const FORMS = { elicitation: { form: {} } };

/** Calls a tool as such a client. `more` has the request state and the answers of a repeated call. */
const call = (
  name: string,
  args: object,
  more: object = {},
  { url = stack.url, capabilities = FORMS as object } = {},
) => rpc(url, "tools/call", { name, arguments: args, ...more }, { capabilities });

let places = 0;
const longRange = () => ({ latitude: 47.1, longitude: -100 - ++places / 100, from: "2012-01", to: "2014-02" });

test("a job asks in the answer to its call, and the repeated call with the user's answer gets the result", async () => {
  const args = { filename: "a.txt" };
  const { result } = await call("confirm_delete", args);
  expect(result).toMatchObject({ resultType: "input_required", requestState: expect.any(String) });
  const [[key, request]] = Object.entries(result.inputRequests) as [[string, { method: string; params: object }]];
  expect(request).toMatchObject({ method: "elicitation/create", params: { mode: "form", message: "Delete a.txt?" } });
  const { requestState } = result;
  const unfit = await call("confirm_delete", args, { requestState, inputResponses: { [key]: accept({ confirm: 7 }) } });
  expect([unfit.result.isError, unfit.result.content[0].text]).toEqual([true, expect.stringContaining("stays open")]);
  const inputResponses = { [key]: accept({ confirm: true }) };
  const answered = await call("confirm_delete", args, { requestState, inputResponses });
  expect(answered.result).toMatchObject({ resultType: "complete", structuredContent: { status: "complete" } });
  // A forged request state is refused.
  const forged = await call("confirm_delete", args, { requestState: `${requestState}x`, inputResponses });
  expect(forged.error?.code).toBe(-32602);
});

test("two answers of which only one fits: neither is taken, and both questions stay open", async () => {
  const args = { name: "one fits in a call" };
  const ask = async () => {
    for (;;) {
      const { result } = await call("multi_input", args);
      if (Object.keys(result.inputRequests).length === 2) return result;
    }
  };
  const { requestState, inputRequests } = await ask();
  const [name = "", sure = ""] = Object.keys(inputRequests);
  const inputResponses = { [name]: accept({ name: "Ada" }), [sure]: accept({ confirm: 1 }) };
  const { result } = await call("multi_input", args, { requestState, inputResponses });
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining(`Nothing was done: ${sure}`) }],
  });
  expect(Object.keys((await call("multi_input", args)).result.inputRequests)).toEqual([name, sure]);
});

test("a confirmation in the arguments does not count from a client that can ask its user", async () => {
  const args = { ...longRange(), confirm: true };
  const { result } = await call("weather_range", args);
  expect(Object.keys(result.inputRequests)).toEqual(["confirm"]);
  const inputResponses = { confirm: { action: "decline" } };
  const declined = await call("weather_range", args, { requestState: result.requestState, inputResponses });
  expect(declined.result).toMatchObject({ isError: true, structuredContent: { status: "failed" } });
  const other = await call("weather_range", { ...longRange(), confirm: true }, {}, { capabilities: {} });
  expect(other.result).toMatchObject({ resultType: "complete", structuredContent: { job_name: expect.any(String) } });
  expect(other.result.structuredContent).not.toHaveProperty("waiting_for");
});

test("a deployment may accept a confirmation in the arguments from every client", async () => {
  await using trusting = await startTaskStack({ bindings: { CONFIRM_ARGUMENTS: "always" } });
  const { result } = await call("weather_range", { ...longRange(), confirm: true }, {}, { url: trusting.url });
  expect(result.resultType).toBe("complete");
  expect(result.structuredContent).not.toHaveProperty("waiting_for");
});

test("the SDK's client asks its user by itself, and its caller sees only the result", async () => {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { capabilities: FORMS, versionNegotiation: { mode: "auto" } },
  );
  const asked: string[] = [];
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { confirm: true } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(stack.url)));
  const result = await client.callTool({ name: "confirm_delete", arguments: { filename: "b.txt" } });
  expect([asked, result.structuredContent]).toEqual([
    ["Delete b.txt?"],
    expect.objectContaining({ status: "complete" }),
  ]);
  await client.close();
});
