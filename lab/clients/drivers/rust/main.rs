//! The official SDK in Rust, driven line by line: see bridge.mjs.
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use std::io::BufRead;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(std::env::var("MCP_URL")?);
    if let Ok(token) = std::env::var("MCP_TOKEN") {
        config = config.auth_header(token);
    }
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await?;
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = if request["list"] == json!(true) {
            client.list_tools(None).await.map(|found| json!(found))
        } else {
            let name = request["name"].as_str().unwrap_or_default().to_owned();
            let args = request["args"].as_object().cloned().unwrap_or_default();
            let params = CallToolRequestParams::new(name).with_arguments(args);
            client.call_tool(params).await.map(|found| json!(found))
        };
        let text = match answer {
            Ok(result) => json!({ "result": result }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        println!("{text}");
    }
    Ok(())
}
