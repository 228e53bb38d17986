import { expect, test } from "vitest";
import { listingOf } from "./listing.ts";
import { resourceReader } from "./resource-reader.ts";

const tool = {
  name: "report",
  inputSchema: { type: "object" },
  _meta: {
    ui: { resourceUri: "ui://acme/app" },
    "ui/resourceUri": "ui://acme/app",
    "openai/outputTemplate": "ui://acme/app",
    "acme/cost": 2,
  },
};

test("a server's own app is not listed, because hosts would let it act as this server", async () => {
  expect(listingOf(tool, {}, false)._meta).toEqual({ "acme/cost": 2 });
  const { read } = resourceReader({ name: "acme", jobs: [undefined as never], isOffered: true });
  await expect(read("ui://acme/app", {} as never)).rejects.toThrow("acme: its apps are not shown here");
});

test("it is listed where the operator allows that server's apps by name", () => {
  expect(listingOf(tool, { apps: true }, false)._meta).toEqual(tool._meta);
});
