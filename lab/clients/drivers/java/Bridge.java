// The official SDK in Java, driven line by line: see bridge.mjs.
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;

public class Bridge {
  public static void main(String[] args) throws Exception {
    var url = URI.create(System.getenv("MCP_URL"));
    var token = System.getenv("MCP_TOKEN");
    var transport = HttpClientStreamableHttpTransport.builder(url.getScheme() + "://" + url.getAuthority())
        .endpoint(url.getPath())
        .httpRequestCustomizer((request, method, uri, body, context) -> {
          if (token != null) request.header("Authorization", "Bearer " + token);
        })
        .build();
    var client = McpClient.sync(transport).requestTimeout(Duration.ofSeconds(60)).build();
    client.initialize();
    var json = JsonMapper.builder().build();
    var lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      var request = json.readValue(line, Map.class);
      try {
        Object result = request.containsKey("list")
            ? client.listTools()
            : client.callTool(new McpSchema.CallToolRequest((String) request.get("name"), (Map<String, Object>) request.get("args")));
        System.out.println(json.writeValueAsString(Map.of("result", result)));
      } catch (Exception error) {
        System.out.println(json.writeValueAsString(Map.of("error", String.valueOf(error.getMessage()))));
      }
    }
    System.exit(0);
  }
}
