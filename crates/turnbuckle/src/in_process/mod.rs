//! Owns the one place where client and server meet without a wire.
//! Does not own either of them.

use crate::{Client, ClientBuilder, Server, error::Result, rpc::in_process::Direct};
use std::sync::Arc;

impl Client {
    /// Connects to a server in the same process: no framing, the same contract.
    /// Dropping the future closes the connection.
    pub async fn in_process(server: &Server) -> Result<Client> {
        Client::builder().in_process(server).await
    }
}

impl ClientBuilder {
    /// Connects to a server in the same process. Dropping the future closes the connection.
    pub async fn in_process(self, server: &Server) -> Result<Client> {
        let served = (server.connection()?, server.connection_limits());
        self.connect_with(|answers, limits| Direct::connect(served, (answers, limits)) as Arc<_>)
            .await
    }
}

#[cfg(test)]
mod tests;
