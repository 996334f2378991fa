//! Owns the body of a request while it arrives: its bounds in size and time.
//! Does not own what it says.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::Body;
use tokio::time::Instant;

use super::{super::guard::Refusal, idle::Idle};

/// How long a body may pause.
const PAUSE: Duration = Duration::from_secs(30);
/// How long it may take in all.
const WHOLE: Duration = Duration::from_secs(5 * 60);

/// A body on its way in.
pub(super) struct Receiving {
    limit: usize,
    /// The only frame, as it came; bodies of more than one are gathered in `text`.
    first: Bytes,
    text: Vec<u8>,
    idle: Idle,
    /// When it was first waited for.
    since: Option<Instant>,
}

impl Receiving {
    pub(super) fn new(limit: usize) -> Receiving {
        Receiving {
            limit,
            first: Bytes::new(),
            text: Vec::new(),
            idle: Idle::new(PAUSE),
            since: None,
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
                let message = if since.elapsed() > WHOLE {
                    format!("the body took more than {} s", WHOLE.as_secs())
                } else {
                    ready!(self.idle.poll(context));
                    format!("the body paused for more than {} s", PAUSE.as_secs())
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
        }
        Poll::Ready(Ok(self.finish()))
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
