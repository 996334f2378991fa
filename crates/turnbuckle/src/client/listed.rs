//! Owns the listing of all that a server has of a kind, over as many pages as there are, up to a
//! cap. Does not own the request for one page.

use std::{
    collections::VecDeque,
    future::IntoFuture,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use turnbuckle_types::{Prompt, Resource, ResourceTemplate, Tool};

use super::Client;
use crate::{
    dispatch::BoxFuture,
    error::{Error, ErrorKind, Result},
};

/// All that a server has of a kind, as a stream that asks for a page when it needs one.
///
/// Dropping it cancels the page that is being asked for.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// let mut resources = client.resources();
/// while let Some(resource) = resources.next().await {
///     println!("{}", resource?.uri);
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct Listed<T> {
    client: Client,
    kind: Kind<T>,
    page: VecDeque<T>,
    state: State<T>,
    pages_left: usize,
}

/// The server's tools.
pub type Tools = Listed<Tool>;

/// A page, and where the next one starts.
type Page<T> = (Vec<T>, Option<String>);
type Asking<T> = BoxFuture<'static, Result<Page<T>>>;

/// What is listed.
struct Kind<T> {
    /// In the plural.
    name: &'static str,
    /// Asks for the page that starts at a cursor.
    ask: fn(&Client, Option<String>) -> Asking<T>,
}

enum State<T> {
    /// Where the next page starts; `None` for the first.
    Next(Option<String>),
    Asking {
        from: Option<String>,
        page: Asking<T>,
    },
    Ended,
}

/// The kinds that there are.
macro_rules! listed {
    ($($constructor:ident: $item:ty, $name:literal, $verb:ident, $member:ident;)+) => {
        $(
            impl Listed<$item> {
                pub(super) fn $constructor(client: &Client) -> Listed<$item> {
                    Listed::new(client, Kind {
                        name: $name,
                        ask: |client, cursor| {
                            let page = client.$verb(cursor).into_future();
                            Box::pin(async {
                                let page = page.await?;
                                Ok((page.$member, page.next_cursor))
                            })
                        },
                    })
                }
            }
        )+
    };
}

listed! {
    tools: Tool, "tools", list_tools_from, tools;
    resources: Resource, "resources", list_resources_from, resources;
    templates: ResourceTemplate, "resource templates", list_templates_from, resource_templates;
    prompts: Prompt, "prompts", list_prompts_from, prompts;
}

impl<T> Listed<T> {
    fn new(client: &Client, kind: Kind<T>) -> Listed<T> {
        let (client, page) = (client.clone(), VecDeque::new());
        Listed { client, kind, page, state: State::Next(None), pages_left: 1000 }
    }

    /// The most pages to ask for before it is an error: 1,000 unless set.
    pub fn max_pages(mut self, pages: usize) -> Listed<T> {
        self.pages_left = pages;
        self
    }

    /// The next one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<T>>
    where
        T: Unpin,
    {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// All of them. Dropping the future cancels the page that is being asked for.
    pub async fn all(mut self) -> Result<Vec<T>>
    where
        T: Unpin,
    {
        let mut all = Vec::new();
        while let Some(one) = self.next().await {
            all.push(one?);
        }
        Ok(all)
    }

    fn turn(&mut self, (page, next): Page<T>, before: Option<&str>) -> Result<()> {
        self.state = match next {
            // A server that hands out the cursor it was given would be asked for ever.
            Some(cursor) if before == Some(cursor.as_str()) => {
                return Err(Error::protocol(format!(
                    "the server's list of {} does not end: the same cursor twice",
                    self.kind.name
                )));
            }
            Some(cursor) => State::Next(Some(cursor)),
            None => State::Ended,
        };
        self.page = page.into();
        Ok(())
    }
}

impl<T: Unpin> Stream for Listed<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(one) = self.page.pop_front() {
                return Poll::Ready(Some(Ok(one)));
            }
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Next(from) => {
                    let from = from.take();
                    if self.pages_left == 0 {
                        self.state = State::Ended;
                        let message = format!(
                            "the server's list of {} has more pages than allowed (max_pages)",
                            self.kind.name
                        );
                        return Poll::Ready(Some(Err(Error::new(ErrorKind::Limit, message))));
                    }
                    self.pages_left -= 1;
                    let page = (self.kind.ask)(&self.client, from.clone());
                    self.state = State::Asking { from, page };
                }
                State::Asking { from, page } => {
                    let page = ready!(page.as_mut().poll(context));
                    let from = from.take();
                    self.state = State::Ended;
                    let turned = page.and_then(|page| self.turn(page, from.as_deref()));
                    if let Err(error) = turned {
                        self.state = State::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        }
    }
}

impl<T> std::fmt::Debug for Listed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listed")
            .field("kind", &self.kind.name)
            .field("pages_left", &self.pages_left)
            .finish_non_exhaustive()
    }
}
