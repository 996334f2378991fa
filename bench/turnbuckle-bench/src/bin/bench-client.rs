//! Turnbuckle as a client driver.

use std::process::Command;

use bench_util::{Arguments, Caller, Era, Target, drive};
use serde::Serialize;
use turnbuckle::{Client, Revision};

#[derive(Clone)]
struct Turnbuckle(Client);

#[derive(Serialize)]
struct Echo {
    text: String,
}

impl Turnbuckle {
    async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<String, String> {
        let result = self.0.call_tool(tool, arguments).await.map_err(|error| error.to_string())?;
        Ok(result.to_text())
    }
}

impl Caller for Turnbuckle {
    async fn echo(&self, text: String) -> Result<String, String> {
        self.call("echo", Echo { text }).await
    }

    async fn slow(&self) {
        let _ = self.call("slow", ()).await;
    }

    async fn stats(&self) -> Result<String, String> {
        self.call("stats", ()).await
    }

    async fn list(&self) -> Result<usize, String> {
        let page = self.0.list_tools().await.map_err(|error| error.to_string())?;
        Ok(page.tools.len())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::from_env();
    let revision = match arguments.era {
        Era::Legacy => Revision::V2025_11_25,
        Era::Modern => Revision::V2026_07_28,
    };
    let builder = Client::builder().revision(revision);
    let client = match &arguments.target {
        Target::Stdio(command) => {
            builder.spawn(Command::new(&command[0]).args(&command[1..])).await?
        }
        Target::Http(url) => builder.connect(url).await?,
    };
    drive(&arguments, Turnbuckle(client)).await
}
