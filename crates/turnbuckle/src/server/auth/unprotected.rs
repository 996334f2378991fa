//! Owns nothing: without the feature `auth` a server lets in whoever the guard lets in.
//! Does not own that guard.
use crate::{
    error::Result,
    server::{Server, shared::App},
    transport::http::server::auth::protect::Protection,
};
use std::sync::Arc;

impl Server {
    pub(crate) fn protection(&self, _: &Arc<App>) -> Result<Option<Protection>> {
        Ok(None)
    }
}
