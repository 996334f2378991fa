//! Owns what a bridge needs of a client beyond its verbs: requests and notifications as text, and
//! whatever the server says that no call waits for. Does not own the bridge.

use turnbuckle_types::RequestId;

use crate::{dispatch::Note, error::Closed};

/// Hears whatever a server says that is neither an answer nor a question. Called by the reader:
/// it must not wait.
pub(crate) trait Hear: Send + Sync + 'static {
    /// A notification, and the request on whose stream it came, where the wire tells. Calls that
    /// poll their exchange see theirs, too.
    fn note(&self, note: Note, within: Option<&RequestId>);
    /// The wire is gone.
    fn gone(&self, why: &Closed);
}

#[cfg(feature = "server")]
pub(crate) use {
    super::{
        input::{Asked, QUESTIONS, ROUNDS, again, asked},
        listen::lies_in,
    },
    joined::{Forwarded, Watched, WeakClient},
};

#[cfg(feature = "server")]
mod joined {
    use std::{
        borrow::Cow,
        sync::{Arc, Weak},
    };

    use turnbuckle_types::{Implementation, Method, Raw, RequestId};

    use super::Hear;
    use crate::{
        client::{
            Client, ClientBuilder,
            listen::{Claim, With},
        },
        dispatch::{Abandon, BoxFuture, Exchange, Note, Outgoing},
        error::{Error, Result},
    };

    /// A request whose params have been written by someone else.
    pub(crate) struct Forwarded<'a> {
        pub(crate) id: RequestId,
        pub(crate) method: Cow<'static, str>,
        /// The whole object with its `_meta`, or empty.
        pub(crate) params: &'a str,
        /// Where in it the progress token goes.
        pub(crate) token_at: Option<usize>,
    }

    /// A client that does not keep its connection open.
    pub(crate) struct WeakClient(Weak<crate::client::Inner>);

    impl WeakClient {
        pub(crate) fn upgrade(&self) -> Option<Client> {
            self.0.upgrade().map(Client)
        }
    }

    /// The wish to hear of one resource of a legacy server. Dropping it takes the wish back.
    pub(crate) struct Watched(Claim);

    impl Watched {
        /// Resolves when the server has said whether it will tell of it. Dropping the future loses
        /// nothing.
        pub(crate) async fn answered(&self) -> Result<()> {
            self.0.answered().await
        }
    }

    impl ClientBuilder {
        /// Says who this client is in all detail.
        pub(crate) fn described(mut self, info: Implementation) -> ClientBuilder {
            self.info = info;
            self
        }

        pub(crate) fn hears(mut self, hears: Arc<dyn Hear>) -> ClientBuilder {
            self.hears = Some(hears);
            self
        }
    }

    impl Client {
        pub(crate) fn clone_weakly(&self) -> WeakClient {
            WeakClient(Arc::downgrade(&self.0))
        }

        /// One exchange, without clocks. Nothing is sent before it is polled.
        pub(crate) fn forward(&self, request: Forwarded<'_>) -> Exchange {
            let Forwarded { id, method, params, token_at } = request;
            let known = Method::from_name(&method);
            let abandonable = known.is_none_or(|method| method.row().abandonable);
            self.0.link().transport.open(Outgoing {
                token_at,
                id: Some(id),
                abandon: if abandonable { Abandon::Signal } else { Abandon::Silence },
                #[cfg(feature = "http")]
                mirror: self.mirror_of(known, params),
                ..Outgoing::new(method, params.to_owned())
            })
        }

        /// Wants to hear of a resource of a legacy server. Has to be called in a runtime.
        pub(crate) fn watched(&self, uri: &str) -> Watched {
            let link = self.0.link();
            let middleware = &self.0.settings().middleware;
            Watched(link.subscriptions.claim(uri, &link, middleware, With::default()))
        }

        /// Sends a notification. Dropping the future before it is done sends nothing.
        pub(crate) fn forward_note(&self, note: Note) -> BoxFuture<'static, ()> {
            let link = self.0.link();
            Box::pin(async move { link.transport.notify(note).await })
        }

        /// What the headers of a request repeat of it.
        #[cfg(feature = "http")]
        fn mirror_of(&self, method: Option<Method>, params: &str) -> crate::dispatch::Mirror {
            #[derive(serde::Deserialize)]
            struct Named {
                name: String,
            }
            let link = self.0.link();
            let called = link.repeated.as_ref().filter(|_| method == Some(Method::CallTool));
            let repeated = called.and_then(|repeated| {
                let Named { name } = serde_json::from_str(params).ok()?;
                Some(repeated.headers(&name, params))
            });
            crate::dispatch::Mirror {
                revision: Some(link.revision()),
                params: repeated.unwrap_or_default(),
                ..Default::default()
            }
        }

        /// Learns from a listing of tools which of their arguments are repeated in headers.
        pub(crate) fn learn_tools(&self, listing: &Raw) {
            #[cfg(feature = "http")]
            if let Some(repeated) = &self.0.link().repeated
                && let Ok(mut page) = listing.decode::<turnbuckle_types::ListToolsResult>()
            {
                repeated.learn(&mut page.tools);
            }
            #[cfg(not(feature = "http"))]
            let _ = listing;
        }

        /// Whether a call was refused for the headers of its arguments.
        pub(crate) fn lacks_headers(&self, method: Option<Method>, error: &Error) -> bool {
            #[cfg(feature = "http")]
            {
                let mismatch = turnbuckle_types::code::HEADER_MISMATCH;
                method == Some(Method::CallTool)
                    && self.0.link().repeated.is_some()
                    && error.status() == Some(400)
                    && error.as_rpc().is_some_and(|rpc| rpc.code == mismatch)
            }
            #[cfg(not(feature = "http"))]
            {
                let _ = (method, error);
                false
            }
        }
    }
}
