//! Owns a listen stream that was not opened yet: what it is to tell, and its options.
//! Does not own opening it.

use std::{future::IntoFuture, pin::Pin, time::Duration};

use turnbuckle_types::{Listen, Method, Raw, Revision, write_at};

use super::{Filter, Listening, again, open};
use crate::{
    client::{
        Call, Client, Retry,
        call::Params,
        connection::{Twice, may_repeat},
    },
    error::{Error, Result},
};

impl Client {
    /// Opens a stream of what happens at the server, when it is awaited; that returns when the
    /// server has said what it will tell. From then on no timeout applies. Dropping the stream, or
    /// the future, unsubscribes.
    ///
    /// A modern server is asked for a stream. With a legacy one the stream is made of the
    /// notifications that it declared (`tools.listChanged` and the like) and of
    /// `resources/subscribe`: once for each URI, however many listen for it. Where nothing of
    /// what was asked for can be had it is refused, unless capabilities are
    /// [ignored](crate::ClientBuilder::ignore_capabilities); else
    /// [`granted`](Listening::granted) says what will come.
    ///
    /// A stream that is lost is opened again if the client's [`Reconnect`](crate::client::Reconnect)
    /// allows it, and then tells [`Event::Missed`](crate::subscribe::Event::Missed).
    ///
    /// ```no_run
    /// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// use turnbuckle::subscribe::{Event, Filter};
    /// let mut listening = client.listen(Filter::new().tools().resource("note://7")).await?;
    /// while let Some(event) = listening.next().await {
    ///     match event? {
    ///         Event::ToolsChanged => println!("list the tools again"),
    ///         Event::ResourceUpdated(uri) => println!("read {uri} again"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn listen(&self, watch: Filter) -> ListenCall {
        let mut text = Vec::new();
        // What layers see, in the words of the revision that has it; a legacy server sees none of it.
        write_at(&Listen::new(watch.0), Revision::LATEST, &mut text);
        let text = String::from_utf8(text).unwrap_or_default();
        let method = Method::Listen.as_str();
        let params = Params::Text(Ok(text));
        ListenCall { call: Call::new(&self.0, method, params, |_, raw| Ok(raw.clone())) }
    }
}

/// A stream of what happens that has not been opened yet. `.await` opens it; dropping that future
/// unsubscribes.
///
/// What is said here counts for each time that the stream is opened, also after it was lost. With a
/// legacy server it counts for the requests `resources/subscribe` and `resources/unsubscribe`; of
/// several who listen for the same URI the first says how that is asked for.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use std::time::Duration;
/// use turnbuckle::subscribe::Filter;
/// let listening = client
///     .listen(Filter::new().resource("note://7"))
///     .timeout(Duration::from_secs(5))
///     .meta("example.com/tenant", serde_json::json!("blue"))
///     .await?;
/// # let _ = listening; Ok(()) }
/// ```
#[must_use = "a stream is not opened until it is awaited"]
pub struct ListenCall {
    call: Call<Raw>,
}

impl ListenCall {
    fn with(self, option: impl FnOnce(Call<Raw>) -> Call<Raw>) -> ListenCall {
        ListenCall { call: option(self.call) }
    }

    /// The longest time until the server has said what it will tell: what calls have in all, or
    /// without a sign of life, unless it is set.
    pub fn timeout(self, opening: Duration) -> ListenCall {
        self.with(|call| call.no_timeouts().timeout(opening))
    }

    /// Waits for as long as the server takes to say what it will tell.
    pub fn no_timeouts(self) -> ListenCall {
        self.with(Call::no_timeouts)
    }

    /// Adds an entry to the `_meta` of what is sent.
    pub fn meta(self, key: impl Into<String>, value: impl Into<Raw>) -> ListenCall {
        self.with(|call| call.meta(key, value))
    }

    /// Opens it in this trace, as [`Call::trace`] does.
    pub fn trace(self, trace: &crate::TraceContext) -> ListenCall {
        self.with(|call| call.trace(trace))
    }

    /// Adds a header to what is sent, on the wire that has headers, as [`Call::header`] does.
    #[cfg(feature = "http")]
    pub fn header(self, name: impl AsRef<str>, value: impl AsRef<str>) -> ListenCall {
        self.with(|call| call.header(name, value))
    }

    async fn opened(self) -> Result<Listening> {
        let client = self.call.request.client.clone();
        let supervisor = &client.supervisor;
        loop {
            let link = supervisor.link();
            let repeats = |error: &Error| {
                supervisor.recovers() && may_repeat(Retry::IfNotSent, Twice::Unknown, error)
            };
            match open(self.call.duplicate()).await {
                Ok(opened) => return Ok(Listening::new(self.call, opened)),
                // As any call that was not sent because there was no connection.
                Err(error) if repeats(&error) && again::is_over(&link).await => {
                    again::next_link(supervisor, &link).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl IntoFuture for ListenCall {
    type Output = Result<Listening>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Listening>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.opened())
    }
}

impl std::fmt::Debug for ListenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenCall").finish_non_exhaustive()
    }
}
