//! What may stand beside what, at the start and later, and who is told of it.

use std::{sync::Mutex, time::Duration};

use super::*;
use crate::{
    ErrorKind, Server, State, prompt, resource,
    server::{Change, Listeners, SubscriptionBus},
    template, tool,
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

fn named(name: &str) -> ToolDef {
    tool(name, async || ())
}

fn names(registry: &Registry) -> Vec<String> {
    let snapshot = registry.snapshot();
    let names = snapshot.section::<ToolDef>().listed().iter().map(|tool| tool.name().to_owned());
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

// req: mcpserver:tool:duplicate-name, mcpserver:resource:duplicate-name, mcpserver:prompt:duplicate-name, protocol:handler:re-register-replaces
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
        assert_eq!(problem.matches("registry/tests.rs:").count(), 2, "{problem}");
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
        "match the same URIs: remove one",
        "tool `needy` takes State<u8>, which the server was not given",
        "the tool name `no spaces` must be",
    ];
    for (error, sentence) in errors.iter().zip(sentences) {
        assert!(error.contains(sentence), "{error}");
    }
    for error in &errors[..4] {
        assert_eq!(error.matches("registry/tests.rs:").count(), 2, "{error}");
    }
    assert_eq!(names(&registry), ["taken"], "nothing has changed");
}

#[test]
fn a_name_is_free_again_when_nothing_has_it() {
    let server = Server::new("s", "1").tool(named("a"));
    let registry = server.registry().unwrap();
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

// req: mcpserver:tool:handle-update, mcpserver:handle:enable-disable, protocol:handler:re-register-replaces
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
    let leads_anywhere = || registry.snapshot().find("x://1").is_some();
    assert!(leads_anywhere());
    registry.template("x://{id}").unwrap().disable();
    assert!(!leads_anywhere());
    let one = registry.add_resource(resource("x://1", async || "")).unwrap();
    assert!(matches!(registry.snapshot().find("x://1"), Some(FoundResource::Resource(_))));
    one.disable();
    assert!(!leads_anywhere());
}

#[test]
fn the_most_specific_template_answers_even_if_it_is_disabled() {
    let server = Server::new("s", "1")
        .template(template("x://{+path}", async || ""))
        .template(template("x://private/{id}", async || ""));
    let registry = server.registry().unwrap();
    let found = |uri: &str| match registry.snapshot().find(uri)? {
        FoundResource::Template(template, _) => Some(template.uri_template().to_owned()),
        FoundResource::Resource(_) => None,
    };
    assert_eq!(found("x://private/1").as_deref(), Some("x://private/{id}"));
    assert_eq!(found("x://other/1").as_deref(), Some("x://{+path}"));
    registry.template("x://private/{id}").unwrap().disable();
    assert_eq!(found("x://private/1"), None);
    registry.template("x://private/{id}").unwrap().remove();
    assert_eq!(found("x://private/1").as_deref(), Some("x://{+path}"));
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
        assert!(problem.contains(&format!("registry/tests.rs:{line}")), "{problem}");
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
    let server = Server::new("s", "1").bus(bus.clone());
    let registry = server.registry().unwrap();
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
    let server = Server::new("s", "1").bus(bus.clone());
    let registry = server.registry().unwrap();
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
    let server = Server::new("s", "1").bus(bus.clone());
    let registry = server.registry().unwrap();
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
    let server = Server::new("s", "1").bus(bus.clone());
    let registry = server.registry().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { registry.add_tool(named("a")).map(drop).unwrap() });
    drop(runtime);
    assert_eq!(bus.take(), [Change::Tools]);
    registry.add_tool(named("b")).unwrap();
    assert_eq!(bus.take(), [Change::Tools]);
}

#[test]
fn what_takes_a_place_in_a_group_has_the_rules_and_layers_of_that() {
    let layer = || crate::middleware::server::Timeout::new(Duration::from_secs(1));
    let inner = crate::server::Group::new()
        .tool(named("a").visible_to(|_| true).layer(layer()))
        .resource(resource("a:b", async || ""))
        .visible_to(|_| false)
        .layer(layer());
    let server =
        Server::new("s", "1").group(crate::server::Group::new().group(inner).visible_to(|_| true));
    let registry = server.registry().unwrap();
    let rules = |name: &str| {
        let snapshot = server.app().unwrap().snapshot();
        let registration = &snapshot.tool(name).unwrap().registration;
        (registration.visible.len(), format!("{:?}", registration.layers))
    };
    assert_eq!(rules("a"), (3, "2 layers".to_owned()));
    let a = registry.tool("a").unwrap();
    for name in ["b", "c"] {
        a.replace(named(name)).unwrap();
        assert_eq!(rules(name), (2, "1 layers".to_owned()), "its own are gone, the groups' not");
    }
    registry.resource("a:b").unwrap().replace(resource("a:c", async || "")).unwrap();
    let snapshot = server.app().unwrap().snapshot();
    assert_eq!(snapshot.section::<ResourceDef>().find("a:c").unwrap().rules().len(), 2);
}

#[test]
fn a_resource_that_is_disabled_is_not_found_by_way_of_a_family() {
    let server = Server::new("s", "1")
        .resource(resource("x://1", async || ""))
        .template(template("x://{id}", async || ""));
    let registry = server.registry().unwrap();
    let found = |uri: &str| server.app().unwrap().snapshot().find(uri);
    let one = registry.resource("x://1").unwrap();
    one.disable();
    assert!(found("x://1").is_none());
    assert!(found("x://2").is_some());
    one.remove();
    assert!(matches!(found("x://1"), Some(FoundResource::Template(..))));
}

/// Something of an author's that uses the registry once it is dropped.
struct Returns(Registry, &'static str);

impl Drop for Returns {
    fn drop(&mut self) {
        self.0.add_tool(named(self.1)).unwrap();
    }
}

#[test]
fn what_is_dropped_may_use_the_registry() {
    let server = Server::new("s", "1").tool(named("a"));
    let registry = server.registry().unwrap();
    let returning = |name, dropped| {
        let returns = Arc::new(Returns(registry.clone(), dropped));
        tool(name, move || {
            let _ = &returns;
            async {}
        })
    };
    let a = registry.tool("a").unwrap();
    registry.add_tool(returning("a", "refused")).unwrap_err();
    registry.add_tool(returning("wrong name", "wrong")).unwrap_err();
    a.replace(returning("b", "replaced")).unwrap();
    a.replace(named("c")).unwrap();
    a.remove();
    a.replace(returning("d", "late")).unwrap_err();
    assert_eq!(names(&registry), ["refused", "wrong", "replaced", "late"]);
}

#[test]
fn changes_of_two_threads_are_told_of_both() {
    for _ in 0..500 {
        let bus = Kept::default();
        let server = Server::new("s", "1").bus(bus.clone());
        let registry = server.registry().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let together = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _entered = runtime.enter();
                together.wait();
                registry.add_tool(named("a")).unwrap();
            });
            scope.spawn(|| {
                let _entered = runtime.enter();
                together.wait();
                registry.add_prompt(prompt("p", async || "")).unwrap();
            });
        });
        drop(runtime);
        let told = bus.take();
        assert!(told.contains(&Change::Tools) && told.contains(&Change::Prompts), "{told:?}");
    }
}

#[test]
fn a_registry_that_is_refused_changes_nothing() {
    let server = Server::new("s", "1").tool(named("a"));
    let app = server.app().unwrap();
    app.capabilities();
    server.registry().unwrap_err();
    assert_eq!(app.nature(), crate::server::methods::cache_hints::Nature::Fixed);
    server.clone().tool(named("b")).check().unwrap();
}

#[test]
fn where_something_was_registered_or_changed_is_told_of_every_way() {
    let here = |line: u32| format!("registry/tests.rs:{line}");
    let (server, line) = (Server::new("s", "1").tools([named("a"), named("a")]), line!());
    assert_eq!(problem(&server).matches(&here(line)).count(), 2);
    let server = Server::new("s", "1");
    let _registry = server.registry().unwrap();
    let late = || server.clone();
    struct Quiet;
    impl crate::middleware::Metrics for Quiet {}
    let plain = tower_layer::layer_fn(|next: crate::middleware::server::InputNext| next);
    let changed = [
        (late().asking(crate::elicit::Asking::default()), line!()),
        (late().keys(crate::server::KeyRing::random()), line!()),
        (late().layer(crate::middleware::server::Timeout::new(Duration::ZERO)), line!()),
        (late().input_request_layer(plain), line!()),
        (late().metrics(Quiet), line!()),
    ];
    for (server, line) in changed {
        let problem = problem(&server);
        assert!(problem.contains(&here(line)), "{problem}");
    }
}

#[test]
fn what_completes_no_argument_is_a_problem() {
    let complete = async || vec![String::new()];
    let prompt = |name: &str| prompt(name, async || "").complete("language", complete);
    let known = turnbuckle_types::PromptArgument::new("language");
    let family = template("x://{id}", async || "").complete_values("id", ["1"]);
    Server::new("s", "1").prompt(prompt("p").argument(known)).template(family).check().unwrap();
    let family = template("x://{id}", async || "").complete_values("key", ["1"]);
    let problem = problem(&Server::new("s", "1").prompt(prompt("p")).template(family));
    for sentence in [
        "prompt `p`: there is no argument `language` to complete",
        "template `x://{id}`: there is no argument `key` to complete",
    ] {
        assert!(problem.contains(sentence), "{problem}");
    }
}

#[test]
fn what_a_server_offers_may_hold_its_registry() {
    let server = Server::new("s", "1");
    let registry = server.registry().unwrap();
    let (held, told) = (registry.clone(), Arc::new(()));
    let is_there = Arc::downgrade(&told);
    let holds = tool("holds", move || {
        let _ = (&held, &told);
        async {}
    });
    let holds = registry.add_tool(holds).unwrap();
    assert!(holds.is_enabled());
    drop(server);
    assert!(is_there.upgrade().is_none(), "the server holds itself");
    assert!(!holds.is_enabled() && registry.tool("holds").is_none());
    for error in [registry.add_tool(named("a")).map(drop), holds.replace(named("a"))] {
        assert!(error.unwrap_err().to_string().contains("the server is gone"));
    }
}

#[test]
fn an_enum_that_two_arguments_share_completes_both() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct Translate {
        /// Which one.
        from: Language,
        to: Language,
    }
    /// A language, of which there are so many that none of them is told of more than once by a server.
    /// It is the one that a text is in, or the one that it is to be in when all is done, and so it is
    /// said once for both of them, which is what makes the description of it so very long after all.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[schemars(rename = "Language/one~two")]
    enum Language {
        Albanian,
        Basque,
        Catalan,
        Danish,
        English,
        Finnish,
        German,
        Hungarian,
        Icelandic,
    }
    let translate = prompt("translate", async |crate::Args(_): crate::Args<Translate>| "");
    let arguments = translate.spec.arguments.as_ref().unwrap();
    assert_eq!(arguments[0].description.as_deref(), Some("Which one."), "it is not in place");
    assert!(arguments[1].description.as_deref().unwrap().starts_with("A language"));
    for argument in ["from", "to"] {
        assert!(translate.completers.find(argument).is_some(), "{argument}");
    }
}
