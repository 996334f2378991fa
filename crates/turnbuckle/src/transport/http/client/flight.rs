//! Owns a request's place in the table, from before it is sent until it ends.
//! Does not own the request.

use std::sync::Arc;

use turnbuckle_types::RequestId;

use super::{Wire, stop::Stop};
use crate::{
    dispatch::table::Serial,
    error::{Error, Executed, Result},
};

/// A place in the table, given back when it ends.
pub(crate) struct Flight {
    wire: Arc<Wire>,
    pub(crate) stop: Arc<Stop>,
    serial: Serial,
}

impl Flight {
    /// Takes a place under the id that was chosen, or under a minted one.
    pub(crate) fn enter(
        wire: &Arc<Wire>,
        chosen: Option<RequestId>,
        stop: impl FnOnce(&RequestId) -> Stop,
    ) -> Result<Flight> {
        let mut entered = None;
        let (_, serial) = wire
            .table()
            .send_with(chosen, |id| entered.insert(Arc::new(stop(id))).clone())
            .map_err(|collision| Error::id_in_flight(&collision.0))?;
        let Some(stop) = entered else { return Err(Error::refused("the table is closed")) };
        let flight = Flight { wire: wire.clone(), stop, serial };
        // A close that came in between did not find it.
        match wire.closed.get() {
            Some(closed) => Err(closed.error(Executed::No)),
            None => Ok(flight),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // By its serial: the id may be a successor's by now.
        self.wire.table().abandon(&self.stop.id, self.serial);
    }
}
