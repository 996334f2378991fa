//! Pages as they are made: once, in the order of registration, and where.

use serde_json::Value;
use turnbuckle_types::{CacheScope, jsonrpc::Params};

use super::*;
use crate::{
    Server, prompt,
    rpc::Permit,
    server::{handler::context::Ctx, items::ToolDef},
    tool,
};

fn server(count: usize) -> Server {
    let tools = (0..count).map(|number| tool(format!("tool{number:04}"), async || ()));
    Server::new("s", "1").tools(tools)
}

fn asked(cursor: Option<&str>, revision: Revision) -> ListRequest {
    ListRequest { cursor: cursor.map(str::to_owned), revision }
}

/// A list that is answered at once.
fn at_once<T: Definition>(app: &Arc<App>, asked: ListRequest) -> Raw {
    match list::<T>(app, asked, || Ok(visit(app))) {
        Ok(Reply::Now(Ok(page))) => page,
        _ => panic!("it is not answered at once"),
    }
}

/// Of a client on a wire of its own.
fn visit(app: &Arc<App>) -> HandlerRequest {
    let permit = Permit::take(&Arc::default(), 1).unwrap();
    HandlerRequest { app: app.clone(), ctx: Ctx::unheard(), params: Params::default(), permit }
}

fn page_at(app: &Arc<App>, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let page = at_once::<ToolDef>(app, asked(cursor, Revision::LATEST));
    let page: ListToolsResult = page.decode().unwrap();
    (page.tools.into_iter().map(|tool| tool.name).collect(), page.next_cursor)
}

#[test]
fn a_page_is_written_once_for_each_revision() {
    let app = server(1_000).app().unwrap();
    for revision in Revision::ALL {
        let first = at_once::<ToolDef>(&app, asked(None, revision));
        let nobody = || panic!("who asks for all of it does not matter");
        let Ok(Reply::Now(Ok(again))) = list::<ToolDef>(&app, asked(None, revision), nobody) else {
            panic!("it is not answered at once");
        };
        assert_eq!(first.as_str().as_ptr(), again.as_str().as_ptr(), "{revision}");
        let tools = app.snapshot().section::<ToolDef>().listed().to_vec();
        let tools: Vec<_> = tools.iter().map(|tool| super::listed(tool, revision)).collect();
        let mut whole = ListToolsResult::new(tools);
        whole.ttl_ms = Some(300_000);
        whole.cache_scope = Some(CacheScope::Public);
        let whole = app.finish(&whole, revision);
        assert_eq!(first.as_str(), whole.as_str(), "as if it had been written in one piece");
    }
}

#[test]
fn pages_after_the_first_are_written_once_too_with_their_cursors() {
    let app = server(25).page_size(10).app().unwrap();
    let mut cursor = None;
    for _ in 0..3 {
        let page = |cursor: &Option<String>| {
            at_once::<ToolDef>(&app, asked(cursor.as_deref(), Revision::LATEST))
        };
        let (first, again) = (page(&cursor), page(&cursor));
        assert_eq!(first.as_str().as_ptr(), again.as_str().as_ptr());
        cursor = first.decode::<ListToolsResult>().unwrap().next_cursor;
    }
    assert_eq!(cursor, None);
}

// req: pagination:exhaustion, tools:list:pagination
#[test]
fn every_item_is_on_one_page_whatever_the_size() {
    for (count, size) in [(0, 1), (1, 1), (5, 1), (5, 2), (6, 3), (7, 3), (5, 5), (5, 100)] {
        let app = server(count).page_size(size).app().unwrap();
        let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (page, next) = page_at(&app, cursor.as_deref());
            assert!(page.len() <= size);
            names.extend(page);
            pages += 1;
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        let expected: Vec<_> = (0..count).map(|number| format!("tool{number:04}")).collect();
        assert_eq!(names, expected);
        assert_eq!(pages, count.div_ceil(size).max(1), "{count} by {size}");
    }
    assert_eq!(page_at(&server(3).page_size(0).app().unwrap(), None).0.len(), 1);
}

#[test]
fn a_walk_goes_on_where_it_was_when_the_list_changes() {
    let server = server(6).page_size(2);
    let registry = server.registry().unwrap();
    let app = server.app().unwrap();
    let (_, cursor) = page_at(&app, None);
    // The one that the page ended with, one before it, and one after it.
    for name in ["tool0000", "tool0001", "tool0003"] {
        registry.tool(name).unwrap().remove();
    }
    registry.add_tool(tool("last", async || ())).unwrap();
    let (page, cursor) = page_at(&app, cursor.as_deref());
    assert_eq!(page, ["tool0002", "tool0004"]);
    let (page, cursor) = page_at(&app, cursor.as_deref());
    assert_eq!((page, cursor), (vec!["tool0005".to_owned(), "last".to_owned()], None));
    let (_, cursor) = page_at(&app, None);
    for name in ["tool0004", "tool0005", "last"] {
        registry.tool(name).unwrap().remove();
    }
    assert_eq!(page_at(&app, cursor.as_deref()), (Vec::new(), None));
}

#[test]
fn replicas_that_share_keys_take_each_others_cursors() {
    let keys = crate::server::KeyRing::new([7; 32]);
    let [here, there] = [(); 2].map(|()| server(4).page_size(2).keys(keys.clone()).app().unwrap());
    let (_, cursor) = page_at(&here, None);
    assert_eq!(page_at(&there, cursor.as_deref()).0, ["tool0002", "tool0003"]);
    let stranger = server(4).page_size(2).app().unwrap();
    let refused = list::<ToolDef>(&stranger, asked(cursor.as_deref(), Revision::LATEST), || {
        Ok(visit(&stranger))
    });
    assert_eq!(refused.err().unwrap().code, -32602);
}

#[test]
fn a_cached_list_belongs_to_its_moment() {
    let server = server(1);
    let registry = server.registry().unwrap();
    let app = server.app().unwrap();
    assert_eq!(page_at(&app, None).0, ["tool0000"]);
    let prompts = at_once::<crate::server::PromptDef>(&app, asked(None, Revision::LATEST));
    registry.add_tool(tool("b", async || ())).unwrap();
    assert_eq!(page_at(&app, None).0, ["tool0000", "b"]);
    let untouched = at_once::<crate::server::PromptDef>(&app, asked(None, Revision::LATEST));
    assert_eq!(prompts.as_str().as_ptr(), untouched.as_str().as_ptr());
    registry.add_prompt(prompt("p", async || "")).unwrap();
    let page = at_once::<crate::server::PromptDef>(&app, asked(None, Revision::LATEST));
    let page: Value = page.decode().unwrap();
    assert_eq!((&page["prompts"][0]["name"], &page["ttlMs"]), (&"p".into(), &0.into()));
}

mod per_caller {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    async fn page<T: Definition>(app: &Arc<App>, cursor: Option<&str>) -> Value {
        let reply = list::<T>(app, asked(cursor, Revision::LATEST), || Ok(visit(app))).unwrap();
        reply.into_outcome().await.unwrap().decode().unwrap()
    }

    fn uris(page: &Value) -> Vec<&str> {
        let resources = page["resources"].as_array().unwrap();
        resources.iter().map(|resource| resource["uri"].as_str().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_walk_goes_on_when_the_first_rule_comes_and_when_the_last_one_goes() {
        let server = server(6).page_size(2);
        let registry = server.registry().unwrap();
        let app = server.app().unwrap();
        let first = page::<ToolDef>(&app, None).await;
        let hidden = registry.add_tool(tool("z", async || ()).visible_to(|_| false)).unwrap();
        let second = page::<ToolDef>(&app, first["nextCursor"].as_str()).await;
        assert_eq!(second["tools"][0]["name"], "tool0002");
        hidden.remove();
        let third = page::<ToolDef>(&app, second["nextCursor"].as_str()).await;
        assert_eq!(third["tools"][0]["name"], "tool0004");
        assert_eq!(third["nextCursor"], Value::Null);
    }

    #[tokio::test]
    async fn a_walk_over_members_goes_on_behind_the_last_one_wherever_that_is() {
        let now = Arc::new(std::sync::Mutex::new(vec!["c", "d", "e", "f"]));
        let members = now.clone();
        let lister = move || {
            let names = members.lock().unwrap().clone();
            let resource = |name| turnbuckle_types::Resource::new(format!("x://{name}"), name);
            async move { names.into_iter().map(resource).collect::<Vec<_>>() }
        };
        let family = crate::template("x://{id}", async || "").list(lister);
        let app = server(0).template(family).page_size(2).app().unwrap();
        let first = page::<ResourceDef>(&app, None).await;
        assert_eq!(uris(&first), ["x://c", "x://d"]);
        let cursor = first["nextCursor"].as_str();
        for (members, rest) in [
            (vec!["a", "b", "c", "d", "e", "f"], ["x://e", "x://f"]),
            (vec!["d", "e", "f"], ["x://e", "x://f"]),
            (vec!["c", "d2", "e", "f"], ["x://e", "x://f"]),
        ] {
            *now.lock().unwrap() = members;
            assert_eq!(uris(&page::<ResourceDef>(&app, cursor).await), rest);
        }
    }

    /// Answers every request itself.
    #[derive(Clone)]
    struct Refuses(crate::middleware::server::Next, Arc<AtomicUsize>);

    impl tower_service::Service<crate::middleware::server::Request> for Refuses {
        type Response = crate::middleware::Response;
        type Error = RpcError;
        type Future = crate::rpc::BoxFuture<'static, Result<Self::Response, RpcError>>;

        fn poll_ready(
            &mut self,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), RpcError>> {
            self.0.poll_ready(context)
        }

        fn call(&mut self, request: crate::middleware::server::Request) -> Self::Future {
            self.1.fetch_add(1, Ordering::Relaxed);
            match request.name() {
                Some("refused://{id}") => Box::pin(async { Err(RpcError::internal("not now")) }),
                Some("panics://{id}") => Box::pin(async { panic!("the layer panics") }),
                _ => self.0.call(request),
            }
        }
    }

    #[tokio::test]
    async fn a_lister_is_behind_the_layers_of_its_family_and_a_refusal_costs_that_one_only() {
        let seen = Arc::new(AtomicUsize::new(0));
        let family = |scheme: &'static str| {
            let member = turnbuckle_types::Resource::new(format!("{scheme}://1"), "1");
            let seen = seen.clone();
            let layer = tower_layer::layer_fn(move |next| Refuses(next, seen.clone()));
            crate::template(format!("{scheme}://{{id}}"), async || "")
                .list(move || {
                    let member = member.clone();
                    async move {
                        assert_ne!(scheme, "fails", "the lister panics");
                        vec![member]
                    }
                })
                .layer(layer)
        };
        let mut server = server(0);
        for scheme in ["refused", "panics", "fails", "passed"] {
            server = server.template(family(scheme));
        }
        let app = server.app().unwrap();
        let page = page::<ResourceDef>(&app, None).await;
        assert_eq!(uris(&page), ["passed://1"]);
        assert_eq!(seen.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn rules_and_listers_do_not_run_before_the_answer_is_waited_for() {
        let runs = Arc::new(AtomicUsize::new(0));
        let (by_rule, by_lister) = (runs.clone(), runs.clone());
        let server = server(3)
            .tool(tool("ruled", async || ()).visible_to(move |_| {
                by_rule.fetch_add(1, Ordering::Relaxed);
                false
            }))
            .template(crate::template("x://{id}", async || "").list(move || {
                by_lister.fetch_add(1, Ordering::Relaxed);
                async { Vec::new() }
            }));
        let app = server.app().unwrap();
        let asked = || asked(None, Revision::LATEST);
        let tools = list::<ToolDef>(&app, asked(), || Ok(visit(&app))).unwrap();
        let resources = list::<ResourceDef>(&app, asked(), || Ok(visit(&app))).unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        let (Reply::Later(tools), Reply::Later(resources)) = (tools, resources) else {
            panic!("they were answered at once");
        };
        let tools: Value = tools.await.unwrap().decode().unwrap();
        assert_eq!(tools["tools"].as_array().unwrap().len(), 3);
        assert_eq!((&tools["ttlMs"], &tools["cacheScope"]), (&300_000.into(), &"private".into()));
        let resources: Value = resources.await.unwrap().decode().unwrap();
        assert_eq!((&resources["ttlMs"], &resources["cacheScope"]), (&0.into(), &"private".into()));
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        // What no rule and no lister concerns is answered at once as before.
        at_once::<crate::server::items::TemplateDef>(&app, asked());
    }
}
