//! Owns the listing of all tools over as many pages as there are, up to a cap.
//! Does not own the request for one page.

use std::{
    collections::VecDeque,
    future::IntoFuture,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use turnbuckle_types::{ListToolsResult, Tool};

use super::Client;
use crate::{
    dispatch::BoxFuture,
    error::{Error, ErrorKind, Result},
};

/// The server's tools, as a stream that asks for a page when it needs one.
///
/// Dropping it cancels the page that is being asked for.
#[must_use = "a stream does nothing until it is polled"]
pub struct Tools {
    client: Client,
    page: VecDeque<Tool>,
    state: State,
    pages_left: usize,
}

enum State {
    /// Where the next page starts; `None` for the first.
    Next(Option<String>),
    Asking {
        from: Option<String>,
        page: BoxFuture<'static, Result<ListToolsResult>>,
    },
    Ended,
}

impl Tools {
    pub(super) fn new(client: Client) -> Tools {
        Tools { client, page: VecDeque::new(), state: State::Next(None), pages_left: 1000 }
    }

    /// The most pages to ask for before it is an error: 1,000 unless set.
    pub fn max_pages(mut self, pages: usize) -> Tools {
        self.pages_left = pages;
        self
    }

    /// The next tool. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Tool>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// All of them. Dropping the future cancels the page that is being asked for.
    pub async fn all(mut self) -> Result<Vec<Tool>> {
        let mut tools = Vec::new();
        while let Some(tool) = self.next().await {
            tools.push(tool?);
        }
        Ok(tools)
    }

    fn turn(&mut self, page: ListToolsResult, before: Option<&str>) -> Result<()> {
        self.page = page.tools.into();
        self.state = match page.next_cursor {
            // A server that hands out the cursor it was given would be asked for ever.
            Some(cursor) if before == Some(cursor.as_str()) => {
                return Err(Error::protocol(
                    "the server's list of tools does not end: the same cursor twice",
                ));
            }
            Some(cursor) => State::Next(Some(cursor)),
            None => State::Ended,
        };
        Ok(())
    }
}

impl Stream for Tools {
    type Item = Result<Tool>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(tool) = self.page.pop_front() {
                return Poll::Ready(Some(Ok(tool)));
            }
            match &mut self.state {
                State::Ended => return Poll::Ready(None),
                State::Next(from) => {
                    let from = from.take();
                    if self.pages_left == 0 {
                        self.state = State::Ended;
                        let message =
                            "the server's list of tools has more pages than allowed (max_pages)";
                        return Poll::Ready(Some(Err(Error::new(ErrorKind::Limit, message))));
                    }
                    self.pages_left -= 1;
                    let page = self.client.list_tools_from(from.clone()).into_future();
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

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools").field("pages_left", &self.pages_left).finish_non_exhaustive()
    }
}
