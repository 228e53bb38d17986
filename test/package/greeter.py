"""A server over stdio with one tool, which uses only the standard library."""

import json
import sys

TOOL = {
    "name": "greet",
    "description": "Greets somebody.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "greeter", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"Hello, {params['arguments']['name']}."}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params"))
    error = {"code": -32601, "message": "Method not found"}
    body = {"error": error} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
