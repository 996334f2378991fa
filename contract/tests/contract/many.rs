//! A group of servers that are processes and addresses, from a configuration as hosts write it.

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use turnbuckle::{
    Client, Server,
    server::{Header, HttpHeader},
    tool,
    transport::child_process::ExitMethod,
};
use turnbuckle_host::{ClientGroup, McpConfig, Status};

use crate::rig::{eventually, within};

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_group_of_processes_starts_works_and_ends() {
    let program = env!("CARGO_BIN_EXE_fixture");
    let text = json!({"mcpServers": {
        "one": {"command": "${FIXTURE}", "args": ["--serves", "${ERA:-legacy}"]},
        "two": {"command": "${FIXTURE}", "args": ["--serves", "modern"]},
        "dies": {"command": "sh", "args": ["-c", "echo no luck >&2; exit 7"]},
        "off": {"command": "${FIXTURE}", "disabled": true},
        "unset": {"command": "${NO_SUCH}"},
    }});
    let env = |name: &str| (name == "FIXTURE").then(|| program.to_owned());
    let config = McpConfig::parse_with(&text.to_string(), env).unwrap();
    within(async {
        let group = ClientGroup::start_all(&config, |_| Client::builder()).unwrap();
        let tools = group.tools().await;
        let failed: Vec<&str> = tools.failed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(failed, ["dies", "unset"]);
        for server in ["one", "two"] {
            let name = format!("{server}_echo");
            let tool = tools.tools.iter().find(|tool| tool.name == name).unwrap();
            assert_eq!((tool.server.as_str(), tool.tool.name.as_str()), (server, "echo"));
            let said = group.call_tool(&name, json!({"text": server})).await.unwrap();
            assert_eq!(said.to_text(), server);
        }
        let eras = ["one", "two"].map(|name| group.client(name).unwrap().revision().era());
        assert_ne!(eras[0], eras[1]);
        let dead = group.servers().into_iter().find(|health| health.server == "dies").unwrap();
        assert!(matches!(dead.status, Status::Failed(why) if why.contains("no luck")));

        let exit = group.stop("one").await.unwrap();
        assert_eq!(exit.how, ExitMethod::Exited, "{exit}");
        group.start_again("off").unwrap();
        group.start_again("one").unwrap();
        group.ready("one").await.unwrap();
        group.ready("off").await.unwrap();
        let report = group.stop_all(LONG).await;
        assert!(report.late.is_empty(), "{report:?}");
        let ended = report.stopped.iter().filter_map(|(_, exit)| exit.as_ref());
        assert_eq!(ended.map(|exit| assert!(exit.is_success(), "{exit}")).count(), 3);
    })
    .await;
}

/// A server that never answers, and leaves when its input ends. It says who it is first.
const SILENT: &str =
    r#"echo $$ > "$PIDFILE.new"; mv "$PIDFILE.new" "$PIDFILE"; while read -r line; do :; done"#;

#[tokio::test]
async fn stopping_and_dropping_in_the_middle_of_a_start_leaves_no_process() {
    let folder = std::env::temp_dir().join(format!("turnbuckle-many-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let silent = json!({"command": "sh", "args": ["-c", SILENT]});
    let entry = |name: &str| {
        let mut entry = silent.clone();
        entry["env"] = json!({"PIDFILE": format!("${{workspaceFolder}}/{name}")});
        entry
    };
    let text = json!({"servers": {"a": entry("a"), "b": entry("b")}}).to_string();
    let config = McpConfig::reader().workspace_folder(&folder).parse(&text).unwrap();
    within(async {
        let group = ClientGroup::start_all(&config, |_| Client::builder()).unwrap();
        let files = ["a", "b"].map(|name| folder.join(name));
        eventually(|| files.iter().all(|file| file.exists())).await;
        let [a, b] = files.map(|file| fs::read_to_string(file).unwrap().trim().to_owned());
        group.stop("a").await;
        eventually(|| !runs(&a)).await;
        assert!(runs(&b));
        assert_eq!(group.servers()[1].status, Status::Starting);
        drop(group);
        eventually(|| !runs(&b)).await;
    })
    .await;
    fs::remove_dir_all(&folder).unwrap();
}

fn runs(process: &str) -> bool {
    Command::new("kill").args(["-0", process]).stderr(Stdio::null()).status().unwrap().success()
}

struct Key(String);

impl HttpHeader for Key {
    const NAME: &'static str = "x-key";
    fn from_value(value: &str) -> Result<Key, String> {
        Ok(Key(value.to_owned()))
    }
}

#[tokio::test]
async fn an_address_of_a_configuration_is_reached_with_its_headers() {
    let key = tool("key", async |Header(Key(key)): Header<Key>| key);
    let bound = Server::new("s", "1").tool(key).serve_http("127.0.0.1:0").bind().await.unwrap();
    let entry = json!({"type": "http", "url": "${URL}", "headers": {"X-Key": "Bearer ${KEY}"}});
    let text = json!({"mcpServers": {"s": entry}}).to_string();
    let url = bound.url();
    let env = |name: &str| match name {
        "URL" => Some(url.to_string()),
        "KEY" => Some("k".to_owned()),
        _ => None,
    };
    let config = McpConfig::parse_with(&text, env).unwrap();
    tokio::spawn(bound.into_future());
    within(async {
        let group = ClientGroup::start_all(&config, |_| Client::builder().no_proxy()).unwrap();
        assert_eq!(group.call_tool("key", ()).await.unwrap().to_text(), "Bearer k");
    })
    .await;
}
