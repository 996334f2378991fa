//! Lists all items of a kind, over as many pages as there are, up to a limit.

use std::{
    collections::VecDeque,
    future::{IntoFuture, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use crate::{
    client::{CacheMode, Client, Retry, Timeouts, call::CallRequest},
    error::{Error, ErrorKind, Result},
    rpc::BoxFuture,
};
use futures_core::Stream;
use turnbuckle_types::{Prompt, Raw, Resource, ResourceTemplate, Tool};

/// A stream of all items of a kind, which requests a page when it needs one.
///
/// Dropping it cancels the request for a page. The options are those of a call and apply to each
/// page; set them before the stream is first polled.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use std::time::Duration;
/// use turnbuckle::client::Retry;
/// let mut resources = client.resources().timeout(Duration::from_secs(5)).retry(Retry::Idempotent);
/// while let Some(resource) = resources.next().await {
///     println!("{}", resource?.uri);
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
#[doc(alias = "nextCursor")]
#[doc(alias = "cursor")]
pub struct Pager<T> {
    page: VecDeque<T>,
    pages: Pages<T>,
}

/// The server's tools.
pub type Tools = Pager<Tool>;

/// A stream of whole pages. Its options are those of the [`Pager`] that it is made from.
///
/// Dropping it cancels the request for a page.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// let mut pages = client.tools().max_pages(3).pages();
/// while let Some(page) = pages.next().await {
///     println!("{} more", page?.len());
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct Pages<T> {
    client: Client,
    /// The options of each request.
    request: CallRequest,
    mode: CacheMode,
    kind: PageKind<T>,
    state: State<T>,
    pages_left: usize,
    items_left: usize,
}

/// The items of a page, and the cursor of the next one.
type Page<T> = (Vec<T>, Option<String>);
type PageFuture<T> = BoxFuture<'static, Result<Page<T>>>;

/// A kind of item.
struct PageKind<T> {
    /// In the plural.
    name: &'static str,
    /// Requests the page at a cursor.
    request: fn(&Pages<T>, Option<String>) -> PageFuture<T>,
}

enum State<T> {
    /// The cursor of the next page; `None` for the first.
    Next(Option<String>),
    Requested {
        from: Option<String>,
        page: PageFuture<T>,
    },
    Ended,
}

macro_rules! pagers {
    ($($constructor:ident: $item:ty, $name:literal, $verb:ident, $member:ident;)+) => {
        $(
            impl Pager<$item> {
                pub(crate) fn $constructor(client: &Client) -> Pager<$item> {
                    Pager::new(client, client.$verb().request, PageKind {
                        name: $name,
                        request: |pages, cursor| {
                            let mut call = pages.client.$verb().cache(pages.mode);
                            call.request = pages.request.clone();
                            if let Some(cursor) = cursor {
                                call = call.cursor(cursor);
                            }
                            let page = call.into_future();
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

pagers! {
    tools: Tool, "tools", list_tools, tools;
    resources: Resource, "resources", list_resources, resources;
    templates: ResourceTemplate, "resource templates", list_resource_templates, resource_templates;
    prompts: Prompt, "prompts", list_prompts, prompts;
}

impl<T> Pager<T> {
    fn new(client: &Client, request: CallRequest, kind: PageKind<T>) -> Pager<T> {
        let pages = Pages {
            client: client.clone(),
            request,
            mode: CacheMode::default(),
            kind,
            state: State::Next(None),
            pages_left: 1000,
            items_left: 100_000,
        };
        Pager { page: VecDeque::new(), pages }
    }

    /// Sends the requests below the middleware.
    #[cfg(feature = "http")]
    pub(crate) fn skip_middleware(mut self) -> Pager<T> {
        self.pages.request.skip_middleware = true;
        self
    }

    /// Sets how many pages are requested before the stream fails. Defaults to 1,000.
    pub fn max_pages(mut self, pages: usize) -> Pager<T> {
        self.pages.pages_left = pages;
        self
    }

    /// Sets how cached pages are used.
    pub fn cache(mut self, mode: CacheMode) -> Pager<T> {
        self.pages.mode = mode;
        self
    }

    /// Sets how many items are read before the stream fails. Defaults to 100,000.
    pub fn max_items(mut self, items: usize) -> Pager<T> {
        self.pages.items_left = items;
        self
    }

    /// Sets the longest time for each page. Defaults to the client's timeout for calls.
    pub fn timeout(mut self, each: Duration) -> Pager<T> {
        self.pages.request.timeouts.total = Some(each);
        self
    }

    /// Sets the longest time without a sign of life, for each page.
    pub fn idle_timeout(mut self, idle: Duration) -> Pager<T> {
        self.pages.request.timeouts.idle = Some(idle);
        self
    }

    /// Removes both timeouts.
    pub fn no_timeouts(mut self) -> Pager<T> {
        self.pages.request.timeouts = Timeouts { idle: None, total: None };
        self
    }

    /// Sets when a page is requested again after the connection is lost, see
    /// [`Call::retry`](crate::Call::retry).
    pub fn retry(mut self, retry: Retry) -> Pager<T> {
        self.pages.request.retry = retry;
        self
    }

    /// Adds an entry to the `_meta` of each request. Such pages are not cached.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Raw>) -> Pager<T> {
        self.pages.request.meta.insert(key.into(), value.into());
        self
    }

    /// Makes each request part of this trace, see [`Call::trace`](crate::Call::trace).
    pub fn trace(mut self, trace: &crate::TraceContext) -> Pager<T> {
        trace.write_to(&mut self.pages.request.meta);
        self
    }

    /// Adds a header to each request, see [`Call::header`](crate::Call::header). Such pages are not
    /// cached.
    #[cfg(feature = "http")]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Pager<T> {
        self.pages.request.add_header(name.as_ref(), value.as_ref());
        self
    }

    /// Returns a stream of whole pages.
    pub fn pages(self) -> Pages<T> {
        self.pages
    }

    /// Returns the next item. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Returns all items. Dropping the future cancels the request for a page.
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(page) = self.pages.next().await {
            all.append(&mut page?);
        }
        Ok(all)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(one) = self.page.pop_front() {
                return Poll::Ready(Some(Ok(one)));
            }
            match ready!(self.pages.poll(context)) {
                Some(Ok(page)) => self.page = page.into(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<T> Pages<T> {
    /// Returns the next page. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Vec<T>>> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<T>>>> {
        loop {
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Next(from) => {
                    let from = from.take();
                    if self.pages_left == 0 {
                        self.state = State::Ended;
                        return Poll::Ready(Some(Err(self.too_long("pages", "max_pages"))));
                    }
                    self.pages_left -= 1;
                    let page = (self.kind.request)(self, from.clone());
                    self.state = State::Requested { from, page };
                }
                State::Requested { from, page } => {
                    let page = ready!(page.as_mut().poll(context));
                    let from = from.take();
                    self.state = State::Ended;
                    let page = page.and_then(|page| self.advance(page, from.as_deref()));
                    return Poll::Ready(Some(page));
                }
            }
        }
    }

    /// Counts a page and prepares the request for the next one.
    fn advance(&mut self, (page, next): Page<T>, before: Option<&str>) -> Result<Vec<T>> {
        let Some(left) = self.items_left.checked_sub(page.len()) else {
            return Err(self.too_long("items", "max_items"));
        };
        self.items_left = left;
        match next {
            // The list would never end.
            Some(cursor) if before == Some(cursor.as_str()) => Err(Error::protocol(format!(
                "the server's list of {} does not end: the same cursor twice",
                self.kind.name
            ))),
            Some(cursor) => {
                self.state = State::Next(Some(cursor));
                Ok(page)
            }
            None => Ok(page),
        }
    }

    fn too_long(&self, of: &str, option: &str) -> Error {
        let name = self.kind.name;
        let message = format!("the server's list of {name} has more {of} than allowed ({option})");
        Error::new(ErrorKind::Limit, message)
    }
}

impl<T: Unpin> Stream for Pager<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}

impl<T> Stream for Pages<T> {
    type Item = Result<Vec<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}

impl<T> std::fmt::Debug for Pager<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pages.fmt(f)
    }
}

impl<T> std::fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pager")
            .field("kind", &self.kind.name)
            .field("pages_left", &self.pages_left)
            .field("items_left", &self.items_left)
            .finish_non_exhaustive()
    }
}
