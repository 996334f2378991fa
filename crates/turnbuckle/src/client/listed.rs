//! Owns the listing of all that a server has of a kind, over as many pages as there are, up to a
//! cap. Does not own the request for one page.

use std::{
    collections::VecDeque,
    future::{IntoFuture, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use turnbuckle_types::{Meta, Prompt, Raw, Resource, ResourceTemplate, Tool};

#[cfg(feature = "http")]
use super::call::Params;
use super::{CacheMode, Call, Client, Retry, Timeouts, call::Passes};
use crate::{
    dispatch::BoxFuture,
    error::{Error, ErrorKind, Result},
};

/// All that a server has of a kind, as a stream that asks for a page when it needs one.
///
/// Dropping it cancels the page that is being asked for. It takes the options of a call, which count
/// for each page; they have to be given before it is first polled.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use std::time::Duration;
/// use turnbuckle::Retry;
/// let mut resources = client.resources().timeout(Duration::from_secs(5)).retry(Retry::Idempotent);
/// while let Some(resource) = resources.next().await {
///     println!("{}", resource?.uri);
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct Listed<T> {
    page: VecDeque<T>,
    pages: Pages<T>,
}

/// The server's tools.
pub type Tools = Listed<Tool>;

/// All that a server has of a kind, as a stream of whole pages.
///
/// Dropping it cancels the page that is being asked for. Its options are those of the [`Listed`] that
/// it is made of.
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
    kind: Kind<T>,
    state: State<T>,
    pages_left: usize,
    items_left: usize,
    options: Options,
}

/// What is said of each page.
struct Options {
    mode: CacheMode,
    passes: Passes,
    timeouts: Timeouts,
    retry: Retry,
    meta: Meta,
    #[cfg(feature = "http")]
    headers: Result<Vec<(http::HeaderName, http::HeaderValue)>>,
}

impl Options {
    fn apply<V>(&self, call: Call<V>) -> Call<V> {
        let mut call = call.cache(self.mode).passing(self.passes).retry(self.retry);
        (call.timeouts, call.meta) = (self.timeouts, self.meta.clone());
        #[cfg(feature = "http")]
        match &self.headers {
            Ok(headers) => call.about.headers = headers.clone(),
            Err(wrong) => call.params = Params::Text(Err(wrong.again())),
        }
        call
    }
}

/// A page, and where the next one starts.
type Page<T> = (Vec<T>, Option<String>);
type Asking<T> = BoxFuture<'static, Result<Page<T>>>;

/// What is listed.
struct Kind<T> {
    /// In the plural.
    name: &'static str,
    /// Asks for the page that starts at a cursor.
    ask: fn(&Client, Option<String>, &Options) -> Asking<T>,
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
                        ask: |client, cursor, options| {
                            let mut call = client.$verb();
                            if let Some(cursor) = cursor {
                                call = call.cursor(cursor);
                            }
                            let page = options.apply(call).into_future();
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
    tools: Tool, "tools", list_tools, tools;
    resources: Resource, "resources", list_resources, resources;
    templates: ResourceTemplate, "resource templates", list_resource_templates, resource_templates;
    prompts: Prompt, "prompts", list_prompts, prompts;
}

impl<T> Listed<T> {
    fn new(client: &Client, kind: Kind<T>) -> Listed<T> {
        let pages = Pages {
            client: client.clone(),
            kind,
            state: State::Next(None),
            pages_left: 1000,
            items_left: 100_000,
            options: Options {
                mode: CacheMode::default(),
                passes: Passes::Everything,
                timeouts: client.0.settings().timeouts,
                retry: Retry::default(),
                meta: Meta::new(),
                #[cfg(feature = "http")]
                headers: Ok(Vec::new()),
            },
        };
        Listed { page: VecDeque::new(), pages }
    }

    #[cfg(feature = "http")]
    pub(super) fn passing(mut self, passes: Passes) -> Listed<T> {
        self.pages.options.passes = passes;
        self
    }

    /// The most pages to ask for before it is an error: 1,000 unless set.
    pub fn max_pages(mut self, pages: usize) -> Listed<T> {
        self.pages.pages_left = pages;
        self
    }

    /// What is made of pages that are kept.
    pub fn cache(mut self, mode: CacheMode) -> Listed<T> {
        self.pages.options.mode = mode;
        self
    }

    /// The most items to take before it is an error: 100,000 unless set.
    pub fn max_items(mut self, items: usize) -> Listed<T> {
        self.pages.items_left = items;
        self
    }

    /// The longest time that each page may take in all. As calls have it unless it is set.
    pub fn timeout(mut self, each: Duration) -> Listed<T> {
        self.pages.options.timeouts.total = Some(each);
        self
    }

    /// The longest time that each page may go without a sign of life.
    pub fn idle_timeout(mut self, idle: Duration) -> Listed<T> {
        self.pages.options.timeouts.idle = Some(idle);
        self
    }

    /// Lets each page take as long as it takes.
    pub fn no_timeouts(mut self) -> Listed<T> {
        self.pages.options.timeouts = Timeouts { idle: None, total: None };
        self
    }

    /// When a page is asked for again after its connection was lost, as [`Call::retry`] says.
    pub fn retry(mut self, retry: Retry) -> Listed<T> {
        self.pages.options.retry = retry;
        self
    }

    /// Adds an entry to the `_meta` of each request. What is asked for so is not kept.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Raw>) -> Listed<T> {
        self.pages.options.meta.insert(key.into(), value.into());
        self
    }

    /// Asks for each page in this trace, as [`Call::trace`] does.
    pub fn trace(mut self, trace: &crate::TraceContext) -> Listed<T> {
        trace.write_to(&mut self.pages.options.meta);
        self
    }

    /// Adds a header to each request, as [`Call::header`] does. What is asked for so is not kept.
    #[cfg(feature = "http")]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Listed<T> {
        let headers = &mut self.pages.options.headers;
        match super::http::own_header(name.as_ref(), value.as_ref()) {
            Ok(header) => {
                if let Ok(headers) = headers {
                    headers.push(header);
                }
            }
            Err(wrong) => *headers = Err(wrong),
        }
        self
    }

    /// The same, a page at a time.
    pub fn pages(self) -> Pages<T> {
        self.pages
    }

    /// The next one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// All of them. Dropping the future cancels the page that is being asked for.
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
    /// The next page. Dropping the future loses nothing.
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
                    let page = (self.kind.ask)(&self.client, from.clone(), &self.options);
                    self.state = State::Asking { from, page };
                }
                State::Asking { from, page } => {
                    let page = ready!(page.as_mut().poll(context));
                    let from = from.take();
                    self.state = State::Ended;
                    let turned = page.and_then(|page| self.turn(page, from.as_deref()));
                    return Poll::Ready(Some(turned));
                }
            }
        }
    }

    /// Goes on after a page.
    fn turn(&mut self, (page, next): Page<T>, before: Option<&str>) -> Result<Vec<T>> {
        let Some(left) = self.items_left.checked_sub(page.len()) else {
            return Err(self.too_long("items", "max_items"));
        };
        self.items_left = left;
        match next {
            // A server that hands out the cursor it was given would be asked for ever.
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

impl<T: Unpin> Stream for Listed<T> {
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

impl<T> std::fmt::Debug for Listed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pages.fmt(f)
    }
}

impl<T> std::fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listed")
            .field("kind", &self.kind.name)
            .field("pages_left", &self.pages_left)
            .field("items_left", &self.items_left)
            .finish_non_exhaustive()
    }
}
