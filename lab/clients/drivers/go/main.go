// The official SDK in Go, driven line by line: see bridge.mjs.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type withToken struct{ token string }

func (t withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.token != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+t.token)
	}
	return http.DefaultTransport.RoundTrip(request)
}

func main() {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "matrix", Version: "1.0.0"}, nil)
	http := &http.Client{Transport: withToken{os.Getenv("MCP_TOKEN")}}
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: os.Getenv("MCP_URL"), HTTPClient: http}, nil)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var request struct {
			List bool           `json:"list"`
			Name string         `json:"name"`
			Args map[string]any `json:"args"`
		}
		_ = json.Unmarshal(lines.Bytes(), &request)
		var result any
		if request.List {
			result, err = session.ListTools(ctx, nil)
		} else {
			result, err = session.CallTool(ctx, &mcp.CallToolParams{Name: request.Name, Arguments: request.Args})
		}
		answer := map[string]any{"result": result}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}
