//! Reads the body of a request within bounds of size and time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::super::timing::{BODY_PAUSE, BODY_WHOLE, REFUSED_BODY_BYTES, REFUSED_BODY_PAUSE};
use crate::{
    rpc::memory::{HeldBytes, MemoryBudget},
    transport::http::server::{listen::idle::Idle, security::guard::Refusal},
};
use bytes::{Buf, Bytes};
use http::{HeaderMap, StatusCode, header::EXPECT};
use http_body::Body;
use tokio::time::{Instant, Sleep, sleep};

/// Reads the body of a refused request. Many clients send the whole request before they read the
/// response; closing the connection earlier would lose the response.
pub(crate) struct Discarding {
    left: usize,
    /// Set once the body had to be waited for.
    until: Option<Pin<Box<Sleep>>>,
}

impl Discarding {
    /// Of a request with these headers.
    pub(crate) fn new(headers: &HeaderMap) -> Discarding {
        // A client that expects `100 Continue` reads first; reading the body would accept it.
        let left = if headers.contains_key(EXPECT) { 0 } else { REFUSED_BODY_BYTES };
        Discarding { left, until: None }
    }

    /// Reads to the end, unless that is too far.
    pub(crate) fn poll<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        while self.left > 0 && !body.is_end_stream() && body.size_hint().lower() <= self.left as u64
        {
            match body.as_mut().poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let length = frame.data_ref().map_or(0, Buf::remaining);
                    self.left = self.left.saturating_sub(length);
                }
                Poll::Ready(_) => break,
                Poll::Pending => {
                    let until =
                        self.until.get_or_insert_with(|| Box::pin(sleep(REFUSED_BODY_PAUSE)));
                    return until.as_mut().poll(context);
                }
            }
        }
        Poll::Ready(())
    }
}

/// Collects the body of a request.
pub(super) struct Receiving {
    limit: usize,
    /// The only frame, as it came; bodies of more than one are gathered in `text`.
    first: Bytes,
    text: Vec<u8>,
    idle: Idle,
    /// When the body was first waited for.
    since: Option<Instant>,
    held: HeldBytes,
}

impl Receiving {
    pub(super) fn new(limit: usize, memory: Arc<MemoryBudget>) -> Receiving {
        Receiving {
            limit,
            first: Bytes::new(),
            text: Vec::new(),
            idle: Idle::new(BODY_PAUSE),
            since: None,
            held: HeldBytes::new(memory),
        }
    }

    /// Reads to the end. A body that is too long is refused without being read further.
    pub(super) fn poll<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Refusal>> {
        if body.size_hint().lower() > self.limit.saturating_sub(self.length()) as u64 {
            return Poll::Ready(Err(self.too_long()));
        }
        while !body.is_end_stream() {
            let Poll::Ready(frame) = body.as_mut().poll_frame(context) else {
                // One that trickles is looked at with each piece.
                let since = *self.since.get_or_insert_with(Instant::now);
                let message = if since.elapsed() > BODY_WHOLE {
                    format!("the body took more than {} s", BODY_WHOLE.as_secs())
                } else {
                    ready!(self.idle.poll(context));
                    format!("the body paused for more than {} s", BODY_PAUSE.as_secs())
                };
                return Poll::Ready(Err(refusal(StatusCode::REQUEST_TIMEOUT, message)));
            };
            let frame = match frame {
                None => break,
                Some(Ok(frame)) => frame,
                Some(Err(_)) => {
                    let message = "the body could not be read to its end".to_owned();
                    return Poll::Ready(Err(refusal(StatusCode::BAD_REQUEST, message)));
                }
            };
            self.idle.touch();
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            if data.remaining() > self.limit - self.length() {
                return Poll::Ready(Err(self.too_long()));
            }
            self.gather(data, body.size_hint().lower());
            let length = self.length();
            if let Err(error) = self.held.try_set(length) {
                let message = error.message.into_owned();
                return Poll::Ready(Err(refusal(StatusCode::SERVICE_UNAVAILABLE, message)));
            }
        }
        Poll::Ready(Ok(self.finish()))
    }

    /// Returns the memory of the body, which the request holds from now on.
    pub(super) fn held(&mut self) -> Option<Arc<HeldBytes>> {
        self.held.take().map(Arc::new)
    }

    fn length(&self) -> usize {
        self.first.len() + self.text.len()
    }

    /// `rest` is how much is known to follow; it never exceeds the limit by much, because
    /// whatever declares more has been refused.
    fn gather(&mut self, mut data: impl Buf, rest: u64) {
        if self.first.is_empty() && self.text.is_empty() {
            // No copy where the frame is `Bytes` already.
            self.first = data.copy_to_bytes(data.remaining());
            return;
        }
        if self.text.is_empty() {
            let rest = usize::try_from(rest).unwrap_or(0).min(self.limit);
            self.text.reserve(self.first.len() + data.remaining() + rest);
            self.text.extend_from_slice(&std::mem::take(&mut self.first));
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            self.text.extend_from_slice(chunk);
            let length = chunk.len();
            data.advance(length);
        }
    }

    fn finish(&mut self) -> Bytes {
        if self.text.is_empty() {
            return std::mem::take(&mut self.first);
        }
        std::mem::take(&mut self.text).into()
    }

    fn too_long(&self) -> Refusal {
        let message = format!("the body is longer than {} bytes (body_bytes)", self.limit);
        refusal(StatusCode::PAYLOAD_TOO_LARGE, message)
    }
}

fn refusal(status: StatusCode, message: String) -> Refusal {
    Refusal { status, allow: None, message: message.into() }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible, future::poll_fn, pin::pin};

    use http_body::Frame;

    use super::*;

    struct Pieces(VecDeque<&'static str>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece.into()))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    async fn receive(
        pieces: &[&'static str],
        memory: &Arc<MemoryBudget>,
    ) -> Result<(Bytes, Option<Arc<HeldBytes>>), StatusCode> {
        let mut body = pin!(Pieces(pieces.iter().copied().collect()));
        let mut receiving = Receiving::new(1 << 20, memory.clone());
        let text = poll_fn(|context| receiving.poll(body.as_mut(), context))
            .await
            .map_err(|refusal| refusal.status)?;
        Ok((text, receiving.held()))
    }

    #[tokio::test]
    async fn a_body_counts_from_its_first_byte_until_its_request_has_ended() {
        let memory = MemoryBudget::new(8192);
        let large: &str = "a".repeat(4096).leak();
        let (text, held) = receive(&[large, "b"], &memory).await.unwrap();
        assert_eq!((text.len(), held.as_ref().map(|held| held.bytes())), (4097, Some(4097)));
        let (_, second) = receive(&[large], &memory).await.unwrap();
        let refused = receive(&[large], &memory).await.map(|_| ());
        assert_eq!(refused, Err(StatusCode::SERVICE_UNAVAILABLE));
        let (_, small) = receive(&["abcd"], &memory).await.unwrap();
        assert!(small.is_none(), "small ones do not count");
        drop((held, second));
        assert!(receive(&[large], &memory).await.is_ok());
    }
}
