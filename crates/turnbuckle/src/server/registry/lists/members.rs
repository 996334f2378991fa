//! The resources that templates list.

use std::sync::Arc;

use turnbuckle_types::{
    Decode, ListResourcesResult, Method, Raw, Resource, ResourceTemplate, RpcError,
};

use super::{
    PageBuilder,
    cursor::mark,
    place::{FamilyMember, PageStart},
};
use crate::{
    middleware::server::Request,
    rpc::{Permit, Reply},
    server::{
        handler::{
            extract::Arguments,
            reply::Failure,
            run::{HandlerRun, caught},
        },
        items::TemplateDef,
        methods::HandlerRequest,
        registry::{Entry, RegistrySnapshot},
    },
};

/// The most resources of one template that are listed.
const MEMBERS: usize = 10_000;

/// Adds the resources of each template that is visible to the caller, in order. A lister that fails
/// is logged; the others are listed.
pub(crate) async fn fill(
    filling: &mut PageBuilder,
    visit: &HandlerRequest,
    snapshot: &RegistrySnapshot,
    place: PageStart,
) {
    if filling.next.is_some() {
        return;
    }
    let (first, begun) = match place {
        PageStart::After(_) => (0, None),
        PageStart::Member { family, offset, last } => (family, Some((offset, last))),
    };
    let families = snapshot.families().filter(|family| family.number >= first);
    for family in families.filter(|family| visit.app.rules.show(&****family, &visit.ctx)) {
        let family_at = |offset, last| PageStart::Member { family: family.number, offset, last };
        if filling.is_full() {
            filling.next = Some(family_at(0, FamilyMember::default()));
            return;
        }
        let mut members = members(visit, family).await;
        let begun = begun.filter(|_| family.number == first);
        let skipped = begun.map_or(0, |(offset, last)| resumed(&members, offset, last));
        for offset in skipped..members.len() {
            // A resource that is registered under this URI is the one that is read.
            if snapshot.has_resource(&members[offset].uri) {
                continue;
            }
            if filling.is_full() {
                let last = offset.checked_sub(1).map(|last| mark(&members[last].uri));
                filling.next = Some(family_at(offset as u64, last.unwrap_or_default()));
                return;
            }
            complete(&mut members[offset], &family.spec);
            filling.texts.push(Raw::at(&members[offset], visit.ctx.revision()));
        }
    }
}

/// Returns where a page continues: after the last resource of the previous page, wherever that is
/// now. If it is gone, at the same offset.
fn resumed(members: &[Resource], offset: u64, last: FamilyMember) -> usize {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(members.len());
    let is_last = |at: &usize| members.get(*at).is_some_and(|member| mark(&member.uri) == last);
    let Some(expected) = offset.checked_sub(1) else { return 0 };
    let found = Some(expected).filter(is_last).or_else(|| (0..members.len()).find(is_last));
    found.map_or(offset, |at| at + 1)
}

/// Runs a lister within the layers of its template. Failures are logged.
async fn members(visit: &HandlerRequest, family: &Arc<Entry<TemplateDef>>) -> Vec<Resource> {
    let Some(lister) = family.list.clone() else { return Vec::new() };
    let (call, permit) =
        (visit.call(Arguments::Text(Vec::new())), Permit::another(&visit.permit.counter()));
    let input_layers = family.registration.input_layers.clone();
    let listing = async move {
        call.ctx.set_input_middleware(&input_layers);
        HandlerRun::part(&lister, call, permit).await
    };
    let template = family.uri_template();
    let layers = &family.registration.layers;
    let listed = if layers.is_empty() {
        caught(listing).await
    } else {
        let request =
            Request::of(visit, Method::ListResources.as_str().into(), Some(template.to_owned()));
        let revision = visit.ctx.revision();
        let answer = async move {
            let listed = caught(listing).await.map_err(|failure| {
                tracing::error!(?failure, "a lister failed");
                RpcError::internal("internal error")
            })?;
            Ok(Raw::at(&ListResourcesResult::new(listed), revision))
        };
        let layered = layers.reply(request, move || Reply::Later(Box::pin(answer)));
        caught(async move {
            let listed = layered.await.map_err(Failure::internal)?;
            let ListResourcesResult { resources, .. } =
                ListResourcesResult::decode(&listed).map_err(Failure::internal)?;
            Ok(resources)
        })
        .await
    };
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

/// Fills in missing parts of a resource from its template.
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
