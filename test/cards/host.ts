/**
 * A host of cards, in a browser: the extension's own `AppBridge`, a client of the server, and a frame with the content policy
 * that the extension prescribes. It records the calls of the card for the tests.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, getToolUiResourceUri, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
import { rpc } from "../support/rpc.ts";

export interface Opening {
  /** The server's endpoint. */
  url: string;
  tool: string;
  args: Record<string, unknown>;
  /** `result`: the card gets the result of the call. `task`: the call is answered with a task, and the card gets nothing. */
  as?: "result" | "task";
  /** Tools that the host refuses to call for the card. */
  refuses?: readonly string[];
  theme?: "light" | "dark";
  /** Whether the host declares that it shows cards. */
  declares?: boolean;
  /** Whether the host reads resources for its cards. */
  readsResources?: boolean;
}

const UI = "io.modelcontextprotocol/ui";

let bridge: AppBridge;
/** The names of the tools that the card has called, and the addresses of the resources that were read for it. */
const called: string[] = [];
let refused: readonly string[] = [];

async function open(opening: Opening) {
  const { url, tool, args, as = "result", refuses = [], theme = "light" } = opening;
  const { declares = true, readsResources = true } = opening;
  refused = refuses;
  const extensions = { [UI]: { mimeTypes: ["text/html;profile=mcp-app"] } };
  const capabilities = declares ? { extensions } : {};
  const client = new Client({ name: "host", version: "1" }, { versionNegotiation: { mode: "auto" }, capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  const listed = tools.find(({ name }) => name === tool);
  const uri = listed && getToolUiResourceUri(listed);
  if (!listed || uri === undefined) throw new Error(`${tool} has no card`);
  called.push(uri);
  const { contents } = await client.readResource({ uri });
  const [page] = contents as { mimeType: string; text: string }[];
  if (page?.mimeType !== "text/html;profile=mcp-app") throw new Error(`no card: ${page?.mimeType}`);
  const id = await (await fetch("/frames", { method: "POST", body: page.text })).text();

  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.title = "card";
  // As real hosts do. Otherwise the browser gives a card of the other color scheme its own background.
  frame.style.colorScheme = theme;
  document.body.append(frame);
  const hostContext = { theme, toolInfo: { tool: listed as never }, locale: "en-GB", styles: stylesOf(theme) };
  const reads = { serverTools: {}, openLinks: {}, ...(readsResources && { serverResources: {} }) };
  bridge = new AppBridge(null, { name: "host", version: "1" }, reads, { hostContext });
  bridge.oncalltool = async ({ name, arguments: given }) => {
    called.push(name);
    if (refused.includes(name)) throw new Error(`The user does not allow ${name}`);
    return (await client.callTool({ name, arguments: given ?? {} })) as never;
  };
  bridge.onreadresource = async ({ uri }) => {
    called.push(uri);
    return (await client.readResource({ uri })) as never;
  };
  bridge.addEventListener("sizechange", ({ height }) => {
    if (height !== undefined) frame.style.height = `${height}px`;
  });
  const ready = new Promise<void>((resolve) => bridge.addEventListener("initialized", () => resolve()));
  const target = frame.contentWindow as Window;
  await bridge.connect(new PostMessageTransport(target, target));
  frame.src = `/frames/${id}`;
  await ready;
  await bridge.sendToolInput({ arguments: args });
  if (as === "task") {
    const { result } = await rpc(url, "tools/call", { name: tool, arguments: args });
    if (result.resultType !== "task") throw new Error("the call was not answered with a task");
  } else await bridge.sendToolResult((await client.callTool({ name: tool, arguments: args })) as never);
}

const stylesOf = (theme: "light" | "dark") => ({
  variables: {
    "--color-text-primary": theme === "dark" ? "rgb(240, 240, 240)" : "rgb(20, 20, 20)",
    "--color-background-primary": theme === "dark" ? "rgb(30, 30, 30)" : "rgb(255, 255, 255)",
  } as never,
});

const host = {
  open,
  called,
  theme(theme: "light" | "dark") {
    const frame = document.querySelector("iframe") as HTMLIFrameElement;
    frame.style.colorScheme = theme;
    document.body.style.background = theme === "dark" ? "rgb(30, 30, 30)" : "white";
    bridge.setHostContext({ theme, styles: stylesOf(theme) });
  },
  refuse(tools: readonly string[]) {
    refused = tools;
  },
};
export type Host = typeof host;
Object.assign(window, { host });
