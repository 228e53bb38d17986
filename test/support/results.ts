import { type RpcOptions, rpc } from "./rpc.ts";

/** The whole result of a job, which may be larger than one answer. Reads the job's resource part by part. */
// oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
export async function wholeResult(url: string, name: string, options: RpcOptions = {}): Promise<any> {
  let text = "";
  for (let uri: string | undefined = `job://${encodeURIComponent(name)}`; uri !== undefined;) {
    const { result, error } = await rpc(url, "resources/read", { uri }, options);
    if (error) throw new Error(error.message);
    const { result: whole, summary, next } = JSON.parse(result.contents[0].text);
    if (!summary) return whole;
    text += summary.part;
    uri = next;
  }
  return JSON.parse(text);
}
