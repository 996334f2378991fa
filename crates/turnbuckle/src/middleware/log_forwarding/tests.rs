use std::{
    future::poll_fn,
    sync::Mutex,
    task::{Context, Poll},
};

use tokio::sync::oneshot;
use tracing::Instrument as _;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::middleware::heard::heard_by;

/// What a client was told, as `level logger data`.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn send(&self, message: &LogMessage) {
        let logger = message.logger.as_deref().unwrap_or("");
        let text = format!("{} {logger} {}", message.level.as_str(), message.data);
        self.0.lock().unwrap().push(text);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn subscribed() -> (ForwardLogs, tracing::subscriber::DefaultGuard) {
    let forward = ForwardLogs::new();
    let subscriber = tracing_subscriber::registry().with(forward.clone());
    (forward, heard_by(subscriber))
}

async fn told<T>(least: LogLevel, work: impl Future<Output = T>) -> Vec<String> {
    let told = Told::default();
    let client = told.clone();
    relay(least, work, move |_, message| {
        client.send(message);
        Poll::Ready(())
    })
    .await;
    told.all()
}

#[tokio::test]
async fn events_become_messages_with_their_level_fields_and_target() {
    let _subscribed = subscribed();
    let said = told(LogLevel::Debug, async {
        tracing::error!(target: "shop", code = 7, ratio = 0.5, sold = true, "broken");
        tracing::warn!(target: "shop", what = %"cheese", "low");
        tracing::info!(target: "shop::till", "open");
        tracing::debug!(target: "shop", list = ?[1, 2]);
        tracing::trace!(target: "shop", "detail");
    });
    assert_eq!(
        said.await,
        [
            r#"error shop {"code":7,"message":"broken","ratio":0.5,"sold":true}"#,
            r#"warning shop {"message":"low","what":"cheese"}"#,
            r#"info shop::till {"message":"open"}"#,
            r#"debug shop {"list":"[1, 2]"}"#,
            r#"debug shop {"message":"detail"}"#,
        ]
    );
}

#[tokio::test]
async fn what_the_client_did_not_ask_for_is_not_sent() {
    let _subscribed = subscribed();
    let said = told(LogLevel::Notice, async {
        tracing::info!(target: "shop", "open");
        tracing::warn!(target: "shop", "low");
    });
    assert_eq!(said.await, [r#"warning shop {"message":"low"}"#]);
}

#[tokio::test]
async fn events_of_this_crate_and_outside_of_requests_are_not_sent() {
    let _subscribed = subscribed();
    tracing::error!(target: "shop", "before");
    let said = told(LogLevel::Debug, async {
        tracing::error!(target: "turnbuckle", "own");
        tracing::error!(target: "turnbuckle::server", "own");
        tracing::error!(target: "turnbuckle_shop", "somebody's");
    });
    assert_eq!(said.await, [r#"error turnbuckle_shop {"message":"somebody's"}"#]);
    tracing::error!(target: "shop", "after");
    assert!(LogQueue::current().is_none());
}

#[tokio::test]
async fn each_request_has_its_own_messages() {
    let _subscribed = subscribed();
    let (go, gone) = oneshot::channel();
    let one = told(LogLevel::Debug, async {
        tracing::info!(target: "one", "begins");
        gone.await.unwrap();
        tracing::info!(target: "one", "ends");
    });
    let other = told(LogLevel::Debug, async {
        tracing::info!(target: "other", "begins");
        go.send(()).unwrap();
    });
    let (one, other) = tokio::join!(one, other);
    assert_eq!(one, [r#"info one {"message":"begins"}"#, r#"info one {"message":"ends"}"#]);
    assert_eq!(other, [r#"info other {"message":"begins"}"#]);
}

#[tokio::test]
async fn a_span_takes_its_request_along_to_another_task() {
    let _subscribed = subscribed();
    let said = told(LogLevel::Debug, async {
        let span = tracing::info_span!("work");
        let task = async {
            tracing::info!(target: "shop", "in a span");
        };
        tokio::spawn(task.instrument(span)).await.unwrap();
        tokio::spawn(async { tracing::info!(target: "shop", "in none") }).await.unwrap();
    });
    assert_eq!(said.await, [r#"info shop {"message":"in a span"}"#]);
}

#[tokio::test]
async fn a_span_of_another_request_takes_nothing_there() {
    let _subscribed = subscribed();
    let (give, given) = oneshot::channel();
    let (go, gone) = oneshot::channel();
    let one = told(LogLevel::Debug, async {
        give.send(tracing::info_span!("shared")).unwrap();
        gone.await.unwrap();
    });
    let other = told(LogLevel::Debug, async {
        let span = given.await.unwrap();
        span.in_scope(|| tracing::info!(target: "other", "mine"));
        go.send(()).unwrap();
    });
    let (one, other) = tokio::join!(one, other);
    assert_eq!(one, [""; 0]);
    assert_eq!(other, [r#"info other {"message":"mine"}"#]);
}

#[tokio::test]
async fn a_message_from_another_thread_is_sent_while_the_handler_waits() {
    let told = Told::default();
    let (client, (first, mut arrived)) = (told.clone(), tokio::sync::mpsc::channel(1));
    let (release, released) = oneshot::channel::<()>();
    let work = async move {
        let thread = LogQueue::current();
        tokio::task::spawn_blocking(move || {
            let _entered = EnteredQueue::new(thread);
            LogQueue::current()
                .unwrap()
                .push(LogMessage::new(LogLevel::Info, serde_json::json!(1)));
        });
        released.await.unwrap();
    };
    let running = tokio::spawn(relay(LogLevel::Debug, work, move |_, message| {
        client.send(message);
        first.try_send(()).unwrap();
        Poll::Ready(())
    }));
    arrived.recv().await.unwrap();
    assert_eq!(told.all(), ["info  1"]);
    release.send(()).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn nothing_waits_for_a_client_that_does_not_read() {
    let (forward, _subscribed) = subscribed();
    let (told, reads) = (Told::default(), Arc::new(AtomicU64::new(0)));
    let (client, open) = (told.clone(), reads.clone());
    let work = async {
        for number in 0..100 {
            tracing::info!(target: "shop", number);
        }
    };
    let running = relay(LogLevel::Debug, work, move |_, message| {
        if open.load(Ordering::Relaxed) == 0 {
            return Poll::Pending;
        }
        client.send(message);
        Poll::Ready(())
    });
    let mut running = std::pin::pin!(running);
    let mut poll = |context: &mut Context<'_>| Poll::Ready(running.as_mut().poll(context));
    assert!(poll_fn(&mut poll).await.is_pending());
    assert_eq!(forward.dropped(), 36);
    assert!(told.all().is_empty());

    reads.store(1, Ordering::Relaxed);
    assert!(poll_fn(&mut poll).await.is_ready());
    let said = told.all();
    assert_eq!(said.len(), 65);
    assert_eq!(said[0], r#"info shop {"number":0}"#);
    assert_eq!(said[63], r#"info shop {"number":63}"#);
    assert_eq!(
        said[64],
        r#"warning turnbuckle {"count":36,"message":"log messages were dropped"}"#
    );
}

#[tokio::test]
async fn a_span_that_outlives_its_request_has_nobody_to_tell() {
    let (forward, _subscribed) = subscribed();
    let mut kept = None;
    told(LogLevel::Debug, async { kept = Some(tracing::info_span!("work")) }).await;
    let span = kept.unwrap();
    for _ in 0..100 {
        span.in_scope(|| tracing::info!(target: "shop", "too late"));
    }
    assert_eq!(forward.dropped(), 0);
}

#[tokio::test]
async fn a_panic_leaves_no_request_behind() {
    let _subscribed = subscribed();
    let task = tokio::spawn(told(LogLevel::Debug, async { panic!("on purpose") }));
    assert!(task.await.unwrap_err().is_panic());
    assert!(LogQueue::current().is_none());
}
