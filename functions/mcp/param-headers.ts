/** What checks the headers `Mcp-Param-*`. It is loaded by the first call of a tool that has arguments in headers. */
export { HEADER_MISMATCH, headerMismatch } from "../../core/tools/index.ts";
