//! The `mcp.json` file.

use std::collections::BTreeSet;

use serde_json::Value;
use turnbuckle_host::McpConfig;

use crate::json;

const SECRET: &str = "s3cr3t-v4lu3";

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let env = |name: &str| (name != "NONE").then(|| SECRET.to_owned());
    let read = McpConfig::reader().env(env).inputs(|_| Some(SECRET.to_owned())).parse(text);
    let plain = json::unique(data);
    let config = match read {
        Ok(config) => config,
        Err(error) => {
            assert!(text.contains(SECRET) || !error.to_string().contains(SECRET), "{error}");
            // Whatever lists servers as JSON is read.
            let lists = |value: &Value| {
                let lists = ["mcpServers", "servers"].map(|name| value.get(name));
                lists.iter().flatten().all(|list| list.is_object())
                    && lists.iter().any(Option::is_some)
            };
            assert!(!plain.as_ref().is_some_and(lists), "{error}");
            return;
        }
    };
    let names: Vec<&str> = config.servers().map(|(name, _)| name).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len());
    if let Some(plain) = &plain {
        let lists = ["mcpServers", "servers"].iter().filter_map(|name| plain[name].as_object());
        assert_eq!(unique, lists.flat_map(|list| list.keys().map(String::as_str)).collect());
    }
    for (name, server) in config.servers() {
        let shown = match server {
            Ok(server) => format!("{server} {server:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(text.contains(SECRET) || !shown.contains(SECRET), "{shown}");
        assert!(config.server(name).is_some());
    }
}
