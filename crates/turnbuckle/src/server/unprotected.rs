//! Owns nothing: without the feature `auth` a server lets in whoever the guard lets in.
//! Does not own that guard.

use super::Server;
use crate::server::shared::App;
use crate::{error::Result, transport::http::server::protect::Protection};
use std::sync::Arc;

impl Server {
    pub(super) fn protection(&self, _: &Arc<App>) -> Result<Option<Protection>> {
        Ok(None)
    }
}
