import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { wrapArguments } from "./wrap-arguments.ts";

const of = (line: string, env: NodeJS.ProcessEnv = {}) => wrapArguments(line.split(" "), env);

test("values of headers and variables become secrets, and the options contain only their names", () => {
  const header = ["--header", "Authorization: Bearer a:b", "--header", "x-team:reports"];
  const url = wrapArguments([...header, "--allow-private", "https://mcp.acme.example/mcp"], {});
  expect(url.options).toEqual({
    name: "acme",
    url: "https://mcp.acme.example/mcp",
    headers: { Authorization: "$(WRAP_SECRET_ACME_1)", "x-team": "$(WRAP_SECRET_ACME_2)" },
    allowPrivate: true,
  });
  expect(url.secrets).toEqual({ WRAP_SECRET_ACME_1: "Bearer a:b", WRAP_SECRET_ACME_2: "reports" });
  const command = of("--env TOKEN --env MODE=a=b -- python report_server.py --env X", { TOKEN: "the shell's" });
  expect(command.options).toMatchObject({
    name: "report-server",
    command: "python",
    args: ["report_server.py", "--env", "X"],
    env: { TOKEN: "$(WRAP_SECRET_REPORT_SERVER_1)", MODE: "$(WRAP_SECRET_REPORT_SERVER_2)" },
  });
  expect(command.secrets).toEqual({ WRAP_SECRET_REPORT_SERVER_1: "the shell's", WRAP_SECRET_REPORT_SERVER_2: "a=b" });
});

test("values in a URL count as exposed, and become secrets if the URL is written into a project", () => {
  const url = "https://ada:pw@mcp.acme.example/mcp?apiKey=k%201&plan=$(PLAN)&empty=#part";
  expect(of(url)).toMatchObject({ options: { url }, secrets: {}, isExposed: true });
  const project = wrapArguments(["--header", "x-team: reports", url], {}, { hidesUrl: true });
  const storedUrl =
    "https://$(WRAP_SECRET_ACME_1)@mcp.acme.example/mcp?apiKey=$(WRAP_SECRET_ACME_2)&plan=$(PLAN)&empty=#part";
  expect(project).toMatchObject({ options: { name: "acme", url: storedUrl }, isExposed: true });
  expect(project.secrets).toEqual({
    WRAP_SECRET_ACME_1: "ada:pw",
    WRAP_SECRET_ACME_2: "k%201",
    WRAP_SECRET_ACME_3: "reports",
  });
  expect(of("https://mcp.acme.example/mcp?apiKey=$(ACME_KEY)").isExposed).toBe(false);
});

test("the secrets of two servers have different variables, also if --name names the server", () => {
  const one = of("--header Authorization:a https://mcp.acme.example/mcp");
  const other = of("--name acme-2 --header Authorization:b https://mcp.acme.example/mcp");
  expect(one.secrets).toEqual({ WRAP_SECRET_ACME_1: "a" });
  expect(other.secrets).toEqual({ WRAP_SECRET_ACME_2_1: "b" });
});

test("headers and variables from files become secrets as well, and no argument exposes them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "wrap-arguments-"));
  const [headers, variables] = [join(folder, "headers"), join(folder, "variables")];
  await writeFile(headers, "# for acme\nAuthorization: Bearer a:b\n\nx-team:reports\n");
  await writeFile(variables, "TOKEN='of ada'\nMODE=b\n");
  const url = of(`--header-file ${headers} https://mcp.acme.example/mcp`);
  expect(url).toMatchObject({
    options: { headers: { Authorization: "$(WRAP_SECRET_ACME_1)", "x-team": "$(WRAP_SECRET_ACME_2)" } },
    secrets: { WRAP_SECRET_ACME_1: "Bearer a:b", WRAP_SECRET_ACME_2: "reports" },
    isExposed: false,
  });
  const command = of(`--env-file ${variables} -- python report_server.py`);
  expect(command).toMatchObject({
    options: { env: { MODE: "$(WRAP_SECRET_REPORT_SERVER_1)", TOKEN: "$(WRAP_SECRET_REPORT_SERVER_2)" } },
    secrets: { WRAP_SECRET_REPORT_SERVER_1: "b", WRAP_SECRET_REPORT_SERVER_2: "of ada" },
    isExposed: false,
  });
  await writeFile(headers, "Bearer-without-a-name");
  expect(() => of(`--header-file ${headers} https://mcp.acme.example/mcp`)).toThrow(
    /holds a line that is not of the form/,
  );
  expect(of("--env TOKEN -- python server.py", { TOKEN: "x" }).isExposed).toBe(false);
  expect(of("--env TOKEN=x -- python server.py").isExposed).toBe(true);
});

test("tools, prefix, policies and the wait go into the options; unknown arguments are left for `start`", () => {
  const first = of(
    "--tools report_*,crawl --prefix my --after 20 --once a --repeatable b,c_* --port 9000 --memory -- npx some-mcp",
  );
  expect(first.options).toMatchObject({
    name: "some-mcp",
    tools: ["report_*", "crawl"],
    prefix: "my",
    after: 20_000,
    policies: { a: { repeatable: false }, b: { repeatable: true }, "c_*": { repeatable: true } },
  });
  expect(first.rest).toEqual(["--port", "9000", "--memory"]);
  const second = of("--data=state --tools=a --resonate-port 9001 --plain https://a.example/mcp --sample-weather");
  expect(second.rest).toEqual(["--data=state", "--resonate-port", "9001", "--plain", "--sample-weather"]);
  expect(second.options).toMatchObject({ url: "https://a.example/mcp", tools: ["a"] });
});

test("a --name among the arguments of a command does not name the server", () => {
  expect(of("-- python server.py --name x").isNamed).toBe(false);
  expect(of("--name=mine -- python server.py").isNamed).toBe(true);
});

test.each([
  ["https://a.example/mcp https://b.example/mcp", /one URL at most/],
  ["https://a.example/mcp -- python server.py", /the URL of a server, or a command/],
  ["--header nothing https://a.example/mcp", /--header accepts "NAME: VALUE", not "nothing"/],
  ["--env NONE -- python server.py", /--env NONE: this shell has no variable of that name/],
  ["--env A=1 https://a.example/mcp", /--env is for a command/],
  ["--header A:1 -- python server.py", /--header is for a URL/],
  ["--after 301 https://a.example/mcp", /--after accepts seconds, up to 300/],
])("%s is refused with an explanation", (line, words) => {
  expect(() => of(line)).toThrow(words);
});
