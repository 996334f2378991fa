//! `turnbuckle listen`: what is asked for, and the line for each thing that happens.

use serde_json::{Value, json};
use turnbuckle::{
    ErrorKind,
    subscribe::{Event, Filter, Listening},
    types::{Method, SubscriptionFilter},
};

use crate::{
    args::{Format, Listen},
    exit::Failure,
    output::{Reader, json_line, one_line, print_next},
    progress::Line,
    session::{self, Deadline},
};

/// What Ctrl-C does to a stream.
const STREAM: &str = "the stream was closed";

pub(crate) async fn run(arguments: Listen) -> Result<(), Failure> {
    let line = Line::on_stderr();
    let format = arguments.connection.output;
    session::with_client(&arguments.connection, &line, STREAM, async |client, deadline| {
        let asking = async {
            let asked = client.listen(watch(&arguments)).into_future().await;
            asked.map_err(|error| match error.kind() {
                // Nothing was sent: a legacy server declares what it reports.
                ErrorKind::Refused => unreported(),
                _ => error.into(),
            })
        };
        let asking = line.watch("subscribing", asking);
        let mut listening =
            deadline.limit("the server did not say what it will tell", asking).await?;
        let granted = listening.granted().clone();
        let reader = print_next(&granted_line(&granted, format)?)?;
        if names(&granted).is_empty() {
            return Err(Failure::failed("the server tells nothing of what was asked for"));
        }
        match reader {
            Reader::There => follow(&mut listening, deadline, format, &line).await,
            Reader::Gone => Ok(()),
        }
    })
    .await
}

fn unreported() -> Failure {
    Failure::failed(
        "the server does not report changes of what was asked for; list or read it again, for \
         example with `turnbuckle tools TARGET`",
    )
}

/// Prints what happens until the server, the reader or the clock ends it.
async fn follow(
    listening: &mut Listening,
    deadline: Deadline,
    format: Format,
    line: &Line,
) -> Result<(), Failure> {
    loop {
        let event = tokio::select! {
            biased;
            event = listening.next() => event,
            () = deadline.reached() => return Ok(()),
        };
        let Some(event) = event else {
            line.say("the server ended the stream");
            return Ok(());
        };
        if print_next(&event_line(&event?, format)?)? == Reader::Gone {
            return Ok(());
        }
    }
}

/// What was chosen; all lists if nothing was.
fn watch(arguments: &Listen) -> Filter {
    let Listen { tools, prompts, resources, watched, .. } = arguments;
    let all = !(*tools || *prompts || *resources) && watched.is_empty();
    let mut watch = Filter::new();
    if *tools || all {
        watch = watch.tools();
    }
    if *prompts || all {
        watch = watch.prompts();
    }
    if *resources || all {
        watch = watch.resources();
    }
    watched.iter().fold(watch, |watch, uri| watch.resource(uri))
}

fn granted_line(granted: &SubscriptionFilter, format: Format) -> Result<String, Failure> {
    match format {
        Format::Json => {
            json_line(&message(Method::Acknowledged, json!({"notifications": granted})))
        }
        Format::Text => {
            let names = names(granted);
            let shown = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            Ok(format!("granted: {shown}"))
        }
    }
}

fn names(granted: &SubscriptionFilter) -> Vec<String> {
    let lists = [
        ("tools", granted.tools_list_changed),
        ("prompts", granted.prompts_list_changed),
        ("resources", granted.resources_list_changed),
    ];
    let lists = lists.iter().filter(|(_, told)| *told == Some(true)).map(|(name, _)| *name);
    let watched = granted.resource_subscriptions.iter().flatten();
    lists.map(str::to_owned).chain(watched.map(|uri| one_line(uri))).collect()
}

fn event_line(event: &Event, format: Format) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(text(event)),
        Format::Json => json_line(&match event {
            Event::ToolsChanged => message(Method::ToolListChanged, json!({})),
            Event::PromptsChanged => message(Method::PromptListChanged, json!({})),
            Event::ResourcesChanged => message(Method::ResourceListChanged, json!({})),
            Event::ResourceUpdated(uri) => message(Method::ResourceUpdated, json!({ "uri": uri })),
            // No message of the server says so: it has no method.
            Event::Missed => json!({"missed": true}),
            Event::Other { method, params } => json!({"method": method, "params": params}),
            other => json!({"unknown": format!("{other:?}")}),
        }),
    }
}

fn message(method: Method, params: Value) -> Value {
    json!({"method": method.as_str(), "params": params})
}

fn text(event: &Event) -> String {
    match event {
        Event::ToolsChanged => "tools changed".to_owned(),
        Event::PromptsChanged => "prompts changed".to_owned(),
        Event::ResourcesChanged => "resources changed".to_owned(),
        Event::ResourceUpdated(uri) => format!("{} changed", one_line(uri)),
        Event::Missed => "some events were missed: anything may have changed".to_owned(),
        Event::Other { method, params } => one_line(&format!("{method} {params}")),
        other => one_line(&format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn asked(flags: &[&str]) -> String {
        let words = ["turnbuckle", "listen", "server"].iter().chain(flags);
        let Command::Listen(arguments) = Cli::parse_from(words).command else {
            panic!("another command")
        };
        format!("{:?}", watch(&arguments))
    }

    #[test]
    fn all_lists_are_asked_for_unless_something_is_chosen() {
        let all = format!("{:?}", Filter::new().tools().prompts().resources());
        assert_eq!(asked(&[]), all);
        assert_eq!(asked(&["--prompts"]), format!("{:?}", Filter::new().prompts()));
        let two = format!("{:?}", Filter::new().tools().resource("a:1").resource("a:2"));
        assert_eq!(asked(&["--resource", "a:1", "--resource", "a:2", "--tools"]), two);
    }

    #[test]
    fn every_event_is_one_line() {
        let table = [
            (Event::ToolsChanged, "tools changed", "notifications/tools/list_changed"),
            (Event::PromptsChanged, "prompts changed", "notifications/prompts/list_changed"),
            (Event::ResourcesChanged, "resources changed", "notifications/resources/list_changed"),
            (
                Event::ResourceUpdated("a:\n1".into()),
                "a: 1 changed",
                "notifications/resources/updated",
            ),
            (
                Event::Other { method: "x/y".into(), params: json!({"a": 1}).into() },
                r#"x/y {"a":1}"#,
                "x/y",
            ),
        ];
        for (event, line, method) in table {
            assert_eq!(event_line(&event, Format::Text).unwrap(), line);
            let json = event_line(&event, Format::Json).unwrap();
            assert_eq!(json.lines().count(), 1);
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["method"], method);
        }
        assert_eq!(event_line(&Event::Missed, Format::Json).unwrap(), r#"{"missed":true}"#);
    }

    #[test]
    fn what_is_granted_comes_first_and_may_be_nothing() {
        let mut granted = SubscriptionFilter::new();
        assert_eq!(granted_line(&granted, Format::Text).unwrap(), "granted: nothing");
        granted.tools_list_changed = Some(true);
        granted.prompts_list_changed = Some(false);
        granted.resource_subscriptions = Some(vec!["a:1".into()]);
        assert_eq!(granted_line(&granted, Format::Text).unwrap(), "granted: tools, a:1");
        let json: Value =
            serde_json::from_str(&granted_line(&granted, Format::Json).unwrap()).unwrap();
        assert_eq!(json["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(json["params"]["notifications"]["toolsListChanged"], true);
    }
}
