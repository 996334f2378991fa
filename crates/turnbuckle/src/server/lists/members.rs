//! Owns the resources that templates list: asked for, completed, paged. Does not own the listers.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
};

use turnbuckle_types::{Raw, Resource, ResourceTemplate};

use super::{Filling, cursor::Place};
use crate::server::{
    calls::Visit,
    catalogue::{Catalogue, Entry},
    extract::Arguments,
    offer::Template,
    reply::Failure,
};

/// How many members of one family are listed.
const MEMBERS: usize = 10_000;

/// Adds the members of each family that the caller may know of, in order. A lister that fails
/// costs its own members only.
pub(super) async fn fill(
    filling: &mut Filling,
    visit: &Visit,
    catalogue: &Catalogue,
    place: Place,
) {
    if filling.next.is_some() {
        return;
    }
    let (first, skipped) = match place {
        Place::After(_) => (0, 0),
        Place::Member { family, offset } => (family, offset),
    };
    let families = catalogue.families().filter(|family| family.number >= first);
    for family in families.filter(|family| visit.app.rules.show(&****family, &visit.ctx)) {
        let family_at = |offset| Place::Member { family: family.number, offset };
        if filling.is_full() {
            filling.next = Some(family_at(0));
            return;
        }
        let skipped = if family.number == first { skipped } else { 0 };
        for (offset, mut member) in (0..).zip(members(visit, family).await) {
            // A resource that is registered under this URI is the one that is read.
            if offset < skipped || catalogue.has_resource(&member.uri) {
                continue;
            }
            if filling.is_full() {
                filling.next = Some(family_at(offset));
                return;
            }
            complete(&mut member, &family.spec);
            filling.texts.push(Raw::at(&member, visit.ctx.revision()));
        }
    }
}

/// What a lister has to say. What goes wrong is for the log.
async fn members(visit: &Visit, family: &Arc<Entry<Template>>) -> Vec<Resource> {
    let Some(lister) = &family.list else { return Vec::new() };
    let call = visit.call(Arguments::Text(Vec::new()));
    let mut listing = lister.handler.clone().call(call);
    let listed = poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| listing.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(_) => Poll::Ready(Err(Failure::internal("it panicked"))),
        }
    })
    .await;
    let template = family.uri_template();
    match listed {
        Ok(mut members) => {
            if members.len() > MEMBERS {
                tracing::warn!(template, "only the first {MEMBERS} members are listed");
                members.truncate(MEMBERS);
            }
            members
        }
        Err(failure) => {
            tracing::error!(template, ?failure, "the members of a template are not listed");
            Vec::new()
        }
    }
}

/// What a member does not say of itself is true of its family.
fn complete(member: &mut Resource, family: &ResourceTemplate) {
    fn inherit<T: Clone>(own: &mut Option<T>, from: &Option<T>) {
        if own.is_none() {
            own.clone_from(from);
        }
    }
    inherit(&mut member.title, &family.title);
    inherit(&mut member.description, &family.description);
    inherit(&mut member.mime_type, &family.mime_type);
    inherit(&mut member.annotations, &family.annotations);
    inherit(&mut member.icons, &family.icons);
}
