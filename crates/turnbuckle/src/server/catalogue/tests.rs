//! What may stand beside what, at the start and later, and who is told of it.

use std::{sync::Mutex, time::Duration};

use super::*;
use crate::{
    Change, ErrorKind, Listeners, Server, State, SubscriptionBus, prompt, resource, template, tool,
};

/// A bus that keeps what is published.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Change>>>);

impl Kept {
    fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl SubscriptionBus for Kept {
    fn publish(&self, change: Change) {
        self.0.lock().unwrap().push(change);
    }

    fn attach(&self, _: Listeners) {}
}

fn named(name: &str) -> Tool {
    tool(name, async || ())
}

fn names(registry: &Registry) -> Vec<String> {
    let catalogue = registry.app.catalogue();
    let names = catalogue.shelf::<Tool>().listed().iter().map(|tool| tool.name().to_owned());
    names.collect()
}

/// Moves the clock on while everyone else runs.
async fn pass(milliseconds: u64) {
    for _ in 0..milliseconds {
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    tokio::task::yield_now().await;
}

fn problem(server: &Server) -> String {
    let error = server.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    error.to_string()
}

// req: mcpserver:tool:duplicate-name, mcpserver:resource:duplicate-name, mcpserver:prompt:duplicate-name
#[test]
fn two_of_one_name_are_refused_and_both_places_are_named() {
    let [tools, prompts, resources] = [
        Server::new("s", "1").tool(named("twice")).tool(named("twice")),
        Server::new("s", "1")
            .prompt(prompt("twice", async || ""))
            .prompt(prompt("twice", async || "")),
        Server::new("s", "1")
            .resource(resource("a:twice", async || ""))
            .resource(resource("a:twice", async || "")),
    ];
    for (server, kind) in [(tools, "tool"), (prompts, "prompt"), (resources, "resource")] {
        let problem = problem(&server);
        assert!(problem.contains(&format!("two {kind}s named")), "{problem}");
        assert_eq!(problem.matches("catalogue/tests.rs:").count(), 2, "{problem}");
    }
}

// req: mcpserver:tool:duplicate-name, mcpserver:resource:duplicate-name, mcpserver:prompt:duplicate-name
#[test]
fn what_is_refused_at_the_start_is_refused_later_in_the_same_words() {
    let server = Server::new("s", "1")
        .tool(named("taken"))
        .prompt(prompt("taken", async || ""))
        .resource(resource("a:taken", async || ""))
        .template(template("b://{id}", async || ""));
    let registry = server.registry().unwrap();
    let needy = tool("needy", async |State(_): State<u8>| ());
    let errors = [
        registry.add_tool(named("taken")).map(drop),
        registry.add_prompt(prompt("taken", async || "")).map(drop),
        registry.add_resource(resource("a:taken", async || "")).map(drop),
        registry.add_template(template("b://{name}", async || "")).map(drop),
        registry.add_tool(needy).map(drop),
        registry.add_tool(named("no spaces")).map(drop),
    ]
    .map(|added| added.unwrap_err().to_string());
    let sentences = [
        "there are two tools named `taken`: one at ",
        "there are two prompts named `taken`: one at ",
        "there are two resources named `a:taken`: one at ",
        "match the same URIs: only one can answer",
        "tool `needy` takes State<u8>, which the server was not given",
        "the tool name `no spaces` must be",
    ];
    for (error, sentence) in errors.iter().zip(sentences) {
        assert!(error.contains(sentence), "{error}");
    }
    for error in &errors[..4] {
        assert_eq!(error.matches("catalogue/tests.rs:").count(), 2, "{error}");
    }
    assert_eq!(names(&registry), ["taken"], "nothing has changed");
}

#[test]
fn a_name_is_free_again_when_nothing_has_it() {
    let registry = Server::new("s", "1").tool(named("a")).registry().unwrap();
    let a = registry.tool("a").unwrap();
    a.disable();
    assert!(registry.add_tool(named("a")).is_err(), "it may be enabled again");
    a.replace(named("b")).unwrap();
    registry.add_tool(named("a")).unwrap();
    assert!(a.replace(named("a")).is_err());
    registry.tool("a").unwrap().remove();
    a.replace(named("a")).unwrap();
    let families = registry.add_template(template("x://{a}", async || "")).unwrap();
    families.replace(template("x://{b}", async || "")).unwrap();
    assert!(registry.add_template(template("x://{c}", async || "")).is_err());
    families.remove();
    registry.add_template(template("x://{c}", async || "")).unwrap();
}

// req: mcpserver:tool:handle-update, mcpserver:handle:enable-disable
#[test]
fn what_is_replaced_keeps_its_place_and_what_is_added_goes_last() {
    let server = Server::new("s", "1").tool(named("a")).tool(named("b"));
    let registry = server.registry().unwrap();
    let c = registry.add_tool(named("c")).unwrap();
    let a = registry.tool("a").unwrap();
    a.replace(named("z")).unwrap();
    assert_eq!(names(&registry), ["z", "b", "c"]);
    assert!(registry.tool("a").is_none());
    a.disable();
    assert!(!a.is_enabled());
    a.replace(named("y")).unwrap();
    assert_eq!(names(&registry), ["b", "c"], "what is replaced stays disabled");
    a.enable();
    assert_eq!(names(&registry), ["y", "b", "c"]);
    registry.tool("b").unwrap().remove();
    registry.add_tool(named("b")).unwrap();
    assert_eq!(names(&registry), ["y", "c", "b"]);
    c.remove();
    c.remove();
    c.enable();
    assert!(!c.is_enabled());
    let error = c.replace(named("c")).unwrap_err();
    assert!(error.to_string().contains("the tool was removed"), "{error}");
    assert_eq!(names(&registry), ["y", "b"]);
}

#[test]
fn a_family_that_is_disabled_is_not_found() {
    let server = Server::new("s", "1").template(template("x://{id}", async || ""));
    let registry = server.registry().unwrap();
    let leads_anywhere = || registry.app.catalogue().find("x://1").is_some();
    assert!(leads_anywhere());
    registry.template("x://{id}").unwrap().disable();
    assert!(!leads_anywhere());
    let one = registry.add_resource(resource("x://1", async || "")).unwrap();
    assert!(matches!(registry.app.catalogue().find("x://1"), Some(Found::Resource(_))));
    one.disable();
    assert!(!leads_anywhere());
}

#[test]
fn changing_a_server_whose_registry_was_taken_is_a_problem_that_says_what_to_do() {
    let server = Server::new("s", "1");
    let registry = server.registry().unwrap();
    server.check().unwrap();
    registry.add_tool(named("live")).unwrap();
    server.registry().unwrap();
    let changed: [(Server, u32); 2] =
        [(server.clone().tool(named("late")), line!()), (server.clone().state(7_u8), line!())];
    for (server, line) in changed {
        let problem = problem(&server);
        assert!(problem.contains(&format!("catalogue/tests.rs:{line}")), "{problem}");
        assert!(problem.contains("take the registry last"), "{problem}");
        assert!(server.registry().is_err());
    }
}

#[test]
fn clones_share_a_registry_whenever_it_is_taken() {
    let server = Server::new("s", "1");
    let clone = server.clone();
    server.registry().unwrap().add_tool(named("a")).unwrap();
    assert_eq!(names(&clone.registry().unwrap()), ["a"]);
}

#[test]
fn a_server_that_told_what_it_has_gives_no_registry() {
    let server = Server::new("s", "1").tool(named("a"));
    let capabilities = server.app().unwrap().capabilities().clone();
    assert!(capabilities.tools.is_some() && capabilities.prompts.is_none());
    let error = server.registry().unwrap_err();
    assert!(error.to_string().contains("serves already"), "{error}");
}

#[test]
fn a_server_with_a_registry_advertises_what_may_come() {
    let server = Server::new("s", "1");
    server.registry().unwrap();
    let app = server.app().unwrap();
    let advertised = app.capabilities();
    assert_eq!(advertised.tools.as_ref().unwrap().list_changed, Some(true));
    assert_eq!(advertised.prompts.as_ref().unwrap().list_changed, Some(true));
    assert_eq!(advertised.resources.as_ref().unwrap().subscribe, Some(true));
    assert!(advertised.completions.is_some());
    server.registry().unwrap();
}

#[test]
fn without_a_runtime_each_change_is_told_at_once() {
    let bus = Kept::default();
    let registry = Server::new("s", "1").bus(bus.clone()).registry().unwrap();
    let a = registry.add_tool(named("a")).unwrap();
    assert_eq!(bus.take(), [Change::Tools]);
    a.disable();
    assert_eq!(bus.take(), [Change::Tools]);
    a.disable();
    assert_eq!(bus.take(), []);
    registry.add_prompt(prompt("p", async || "")).unwrap();
    registry.add_template(template("x://{id}", async || "")).unwrap();
    assert_eq!(bus.take(), [Change::Prompts, Change::Resources]);
}

// req: mcpserver:list-changed:debounce
#[tokio::test(start_paused = true)]
async fn a_burst_is_told_once_and_what_is_as_it_was_not_at_all() {
    let bus = Kept::default();
    let registry = Server::new("s", "1").bus(bus.clone()).registry().unwrap();
    let lull = async || pass(20).await;
    let handles: Vec<_> = (0..100)
        .map(|number| registry.add_tool(named(&format!("tool{number}"))).unwrap())
        .collect();
    registry.add_resource(resource("a:b", async || "")).unwrap();
    assert_eq!(bus.take(), [], "more may come");
    lull().await;
    assert_eq!(bus.take(), [Change::Tools, Change::Resources]);
    handles[7].disable();
    handles[7].enable();
    handles[7].replace(named("tool7")).unwrap();
    registry.add_tool(named("short")).unwrap().remove();
    lull().await;
    assert_eq!(bus.take(), [], "every list is what it was");
    handles[7].replace(named("tool7").description("It is another.")).unwrap();
    lull().await;
    assert_eq!(bus.take(), [Change::Tools]);
    registry.add_tool(named("wrong name")).unwrap_err();
    lull().await;
    assert_eq!(bus.take(), []);
}

// req: mcpserver:list-changed:debounce
#[tokio::test(start_paused = true)]
async fn a_burst_without_end_is_told_of_now_and_then() {
    let bus = Kept::default();
    let registry = Server::new("s", "1").bus(bus.clone()).registry().unwrap();
    for number in 0..100 {
        registry.add_tool(named(&format!("tool{number}"))).unwrap();
        pass(5).await;
    }
    pass(20).await;
    let told = bus.take();
    assert!((2..=10).contains(&told.len()), "{told:?}");
}

#[test]
fn a_runtime_that_goes_down_loses_no_news() {
    let bus = Kept::default();
    let registry = Server::new("s", "1").bus(bus.clone()).registry().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { registry.add_tool(named("a")).map(drop).unwrap() });
    drop(runtime);
    assert_eq!(bus.take(), [Change::Tools]);
    registry.add_tool(named("b")).unwrap();
    assert_eq!(bus.take(), [Change::Tools]);
}
