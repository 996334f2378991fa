//! The log messages of a server on stderr, for `--verbose`.

use std::time::Duration;

use turnbuckle::{
    Client, ClientBuilder,
    types::{LogLevel, LogMessage, Method, Raw},
};

use crate::{output::one_line, progress::Line};

/// How long a server may take to set its level: the command waits for that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows the log messages of the server.
pub(crate) fn show(builder: ClientBuilder, line: &Line) -> ClientBuilder {
    let line = line.clone();
    builder.on_notification(move |method, params| {
        if let Some(text) = params.and_then(|params| text(method, params)) {
            line.say(&text);
        }
    })
}

/// Asks the server for all its log messages, if it says that it logs.
pub(crate) async fn request(client: &Client, line: &Line) {
    let declared = client.server_capabilities();
    if declared.is_some_and(|declared| declared.logging.is_none()) {
        return;
    }
    if let Err(error) = client.set_log_level(LogLevel::Debug).timeout(PATIENCE).await {
        line.say(&one_line(&format!("note: the server did not set its log level: {error}")));
    }
}

/// Returns the line of a log message; `None` for other notifications.
fn text(method: &str, params: &Raw) -> Option<String> {
    if method != Method::LogMessage.as_str() {
        return None;
    }
    let message: LogMessage = params.decode().ok()?;
    let logger = message.logger.map(|logger| format!(", {logger}")).unwrap_or_default();
    let said = message.data.decode::<String>();
    let said = said.unwrap_or_else(|_| message.data.as_str().to_owned());
    Some(one_line(&format!("server log ({}{logger}): {said}", message.level)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_message_is_one_line_with_its_level_and_logger() {
        let line = |params: serde_json::Value| text("notifications/message", &params.into());
        let message = json!({"level": "warning", "logger": "db", "data": "full\ndisk"});
        assert_eq!(line(message).unwrap(), "server log (warning, db): full disk");
        let message = json!({"level": "info", "data": {"used": 97}});
        assert_eq!(line(message).unwrap(), r#"server log (info): {"used":97}"#);
        assert_eq!(line(json!({"data": 1})), None);
        assert_eq!(text("notifications/progress", &json!({"progress": 1}).into()), None);
    }
}
