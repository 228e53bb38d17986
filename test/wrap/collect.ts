/** Collects large results part by part, as clients do. */
import type { Client } from "@modelcontextprotocol/client";
import type { Structured } from "./support.ts";

/** Returns a job's result as JSON text, read as a resource from an address on, until a part names no next one. */
export async function byResource(client: Client, address: string): Promise<string> {
  let text = "";
  for (let uri: string | undefined = address; uri !== undefined;) {
    const { contents } = await client.readResource({ uri });
    const { summary, next } = JSON.parse((contents[0] as { text: string }).text);
    if (summary.offset !== text.length) throw new Error(`${uri} begins at ${summary.offset}, not at ${text.length}`);
    text += summary.part;
    uri = next;
  }
  return text;
}

/** Returns the same text through `probe_status`, for clients that do not read resources. */
export async function byTool(client: Client, job_name: string, fields?: string[]): Promise<string> {
  let text = "";
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const args = { job_names: [job_name], result: "full", offset, ...(fields && { fields }) };
    const { structuredContent } = await client.callTool({ name: "probe_status", arguments: args });
    const { summary } = (structuredContent as Structured).statuses[0];
    text += summary.part;
    offset = summary.next_offset;
  }
  return text;
}
