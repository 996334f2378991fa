//! Owns lists that are kept up to date: listed now, and again after each burst of changes.
//! Does not own listening, nor the listing of one.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use turnbuckle_types::{Prompt, Resource, ResourceTemplate, SubscriptionFilter, Tool};

use super::{Filter, Listening};
use crate::{
    client::{Client, Pager},
    error::{Error, Result},
    rpc::BoxFuture,
};

/// How long changes are gathered unless told otherwise.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// A list that is kept up to date: first as it is now, then again after changes.
///
/// The first change starts a pause ([`debounce`](LiveList::debounce)); what changes meanwhile is
/// part of the same listing. Listings never overlap: a change during one leads to another after
/// it. A listing that fails is an item, and the stream goes on.
///
/// A server that does not tell of changes of this kind is listed once, and the stream ends. Else
/// it ends when listening does: with an error if that was lost. To be told of changes without
/// listing, use [`listen`](Client::listen). Dropping the stream unsubscribes, and cancels the
/// page that is being asked for.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// let mut tools = client.live_tools();
/// while let Some(tools) = tools.next().await {
///     println!("{} tools by now", tools?.len());
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct LiveList<T> {
    step: RelistStep<T>,
}

enum RelistStep<T> {
    Idle(Box<RelistState<T>>),
    Running(BoxFuture<'static, Stepped<T>>),
    Ended,
}

/// An item, and how it goes on; the end if there is no item.
type Stepped<T> = (Option<Result<Vec<T>>>, Box<RelistState<T>>);

struct RelistState<T> {
    client: Client,
    kind: Kind<T>,
    debounce: Duration,
    stage: RelistStage,
}

/// What is listed.
struct Kind<T> {
    list: fn(&Client) -> Pager<T>,
    watch: fn(Filter) -> Filter,
    is_granted: fn(&SubscriptionFilter) -> Option<bool>,
}

enum RelistStage {
    First,
    Following(Box<Listening>),
    /// Nothing but this is left to say.
    Last(Option<Error>),
}

impl Client {
    /// The server's tools, as they are now and whenever they have changed.
    pub fn live_tools(&self) -> LiveList<Tool> {
        LiveList::new(self, Client::tools, Filter::tools, |granted| granted.tools_list_changed)
    }

    /// The server's prompts, as they are now and whenever they have changed.
    pub fn live_prompts(&self) -> LiveList<Prompt> {
        LiveList::new(self, Client::prompts, Filter::prompts, |granted| {
            granted.prompts_list_changed
        })
    }

    /// The server's resources, as they are now and whenever their list has changed.
    pub fn live_resources(&self) -> LiveList<Resource> {
        LiveList::new(self, Client::resources, Filter::resources, |granted| {
            granted.resources_list_changed
        })
    }

    /// The server's resource templates, as they are now and whenever the list of resources has
    /// changed.
    pub fn live_resource_templates(&self) -> LiveList<ResourceTemplate> {
        LiveList::new(self, Client::resource_templates, Filter::resources, |granted| {
            granted.resources_list_changed
        })
    }
}

impl<T> LiveList<T> {
    fn new(
        client: &Client,
        list: fn(&Client) -> Pager<T>,
        watch: fn(Filter) -> Filter,
        is_granted: fn(&SubscriptionFilter) -> Option<bool>,
    ) -> LiveList<T> {
        let kind = Kind { list, watch, is_granted };
        let (client, debounce, stage) = (client.clone(), DEBOUNCE, RelistStage::First);
        LiveList { step: RelistStep::Idle(Box::new(RelistState { client, kind, debounce, stage })) }
    }

    /// How long changes are gathered before it is listed again: 100 ms. To be set before the
    /// stream is first polled.
    pub fn debounce(mut self, pause: Duration) -> LiveList<T> {
        if let RelistStep::Idle(course) = &mut self.step {
            course.debounce = pause;
        }
        self
    }

    /// The list as it is next; `None` after the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Vec<T>>>
    where
        T: Send + Unpin + 'static,
    {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<T: Send + Unpin + 'static> RelistState<T> {
    async fn next(mut self: Box<Self>) -> Stepped<T> {
        self.stage = match std::mem::replace(&mut self.stage, RelistStage::Last(None)) {
            RelistStage::Last(error) => return (error.map(Err), self),
            // Before the first listing: what changes after it is heard of.
            RelistStage::First => {
                let watch = (self.kind.watch)(Filter::new());
                match changes(self.client.clone(), watch, self.kind.is_granted).await {
                    Ok(listening) => listening.map_or(RelistStage::Last(None), |one| {
                        RelistStage::Following(Box::new(one))
                    }),
                    Err(error) => return (Some(Err(error)), self),
                }
            }
            RelistStage::Following(mut listening) => match listening.next().await {
                None => return (None, self),
                Some(Err(error)) => return (Some(Err(error)), self),
                Some(Ok(_)) => {
                    tokio::time::sleep(self.debounce).await;
                    match drained(listening).await {
                        // The server tells of it no more: this is the last list.
                        RelistStage::Following(listening)
                            if (self.kind.is_granted)(listening.granted()) != Some(true) =>
                        {
                            RelistStage::Last(None)
                        }
                        stage => stage,
                    }
                }
            },
        };
        let listed = (self.kind.list)(&self.client).all().await;
        (Some(listed), self)
    }
}

/// A stream of changes; `None` if the server has none of this kind.
async fn changes(
    client: Client,
    watch: Filter,
    is_granted: fn(&SubscriptionFilter) -> Option<bool>,
) -> Result<Option<Listening>> {
    match client.listen(watch).await {
        Ok(listening) => {
            let granted = is_granted(listening.granted()) == Some(true);
            Ok(granted.then_some(listening))
        }
        // Nothing to be had in this era, or a server that knows no such method.
        Err(error) if !error.is_retryable() => {
            tracing::debug!(%error, "a list is not kept up to date");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Takes all that waits: the listing that follows has seen it.
async fn drained(mut listening: Box<Listening>) -> RelistStage {
    loop {
        let next = std::future::poll_fn(|context| {
            Poll::Ready(match Pin::new(&mut *listening).poll_next(context) {
                Poll::Ready(next) => Some(next),
                Poll::Pending => None,
            })
        });
        match next.await {
            None => return RelistStage::Following(listening),
            Some(Some(Ok(_))) => tokio::task::consume_budget().await,
            Some(Some(Err(error))) => return RelistStage::Last(Some(error)),
            Some(None) => return RelistStage::Last(None),
        }
    }
}

impl<T: Send + Unpin + 'static> Stream for LiveList<T> {
    type Item = Result<Vec<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let RelistStep::Idle(_) = &self.step
            && let RelistStep::Idle(course) = std::mem::replace(&mut self.step, RelistStep::Ended)
        {
            self.step = RelistStep::Running(Box::pin(course.next()));
        }
        let RelistStep::Running(running) = &mut self.step else { return Poll::Ready(None) };
        let (item, course) = ready!(running.as_mut().poll(context));
        self.step = if item.is_some() { RelistStep::Idle(course) } else { RelistStep::Ended };
        Poll::Ready(item)
    }
}

impl<T> std::fmt::Debug for LiveList<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveList").finish_non_exhaustive()
    }
}
