//! Owns what an endpoint is without the feature `auth`: nothing stands before it, and there is no
//! value that could. Does not own the guard, which is always there.

use std::sync::Arc;

use crate::{
    rpc::{BoxFuture, HttpHead, Outcome},
    transport::http::server::{HttpBody, future::Check},
};
use http::{Extensions, Method, Response, Uri, request};
use turnbuckle_types::jsonrpc::Message;

/// There is none.
#[derive(Clone)]
pub(crate) enum Protection {}

impl Protection {
    pub(crate) fn check(&self, _: request::Parts) -> Check {
        match *self {}
    }

    pub(crate) fn refuse(&self, _: &Arc<HttpHead>, _: &Message) -> Option<Response<HttpBody>> {
        match *self {}
    }

    pub(crate) fn until_expiry(
        &self,
        _: &Extensions,
        _: BoxFuture<'static, Outcome>,
    ) -> BoxFuture<'static, Outcome> {
        match *self {}
    }

    pub(crate) fn stream_until_expiry(
        &self,
        _: &Extensions,
        _: Response<HttpBody>,
    ) -> Response<HttpBody> {
        match *self {}
    }

    pub(crate) fn metadata(&self, _: &Method, _: &Uri) -> Option<Response<HttpBody>> {
        match *self {}
    }
}
