//! Owns the set of roots that a client shows to servers, and telling them when it changes.
//! Does not own how a server asks for them: `callbacks` answers.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{
    client::{
        ClientBuilder,
        connection::{ConnectionState, ConnectionStates, Supervisor},
    },
    error::{Error, Result},
    rpc::Note,
};
use tokio::sync::watch;
use turnbuckle_types::{Method, Root};

/// The places in which servers may work: a set that can change while clients are connected.
///
/// Cheap to clone; all clones are the same set, and several clients may show it. Servers are told
/// the roots of now when they ask, in both eras; legacy servers are also told that the set has
/// changed (`notifications/roots/list_changed`): without waiting, and once for changes in quick
/// succession. A set keeps no connection open.
///
/// ```
/// use turnbuckle::{Client, client::RootSet, types::Root};
/// # fn main() -> turnbuckle::Result<()> {
/// let roots = RootSet::new([Root::new("file:///home/ada/engine")])?;
/// let builder = Client::builder().root_set(roots.clone());
/// // Later, when another folder is opened:
/// roots.add(Root::new("file:///home/ada/notes"))?;
/// assert_eq!(roots.roots().len(), 2);
/// # let _ = builder; Ok(()) }
/// ```
#[derive(Clone)]
pub struct RootSet(Arc<SharedRoots>);

struct SharedRoots {
    roots: Mutex<Vec<Root>>,
    changed: watch::Sender<()>,
}

impl RootSet {
    /// A set with these roots. Refused if one is no `file://` URI, or leads out of its own place
    /// with `..`, or is there twice.
    pub fn new(roots: impl IntoIterator<Item = Root>) -> Result<RootSet> {
        let roots = checked(roots)?;
        let changed = watch::Sender::new(());
        Ok(RootSet(Arc::new(SharedRoots { roots: Mutex::new(roots), changed })))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Root>> {
        self.0.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The roots of now.
    pub fn roots(&self) -> Vec<Root> {
        self.lock().clone()
    }

    /// Puts these in the place of all. Refused as by [`new`](RootSet::new); then nothing changes.
    pub fn set(&self, roots: impl IntoIterator<Item = Root>) -> Result<()> {
        let roots = checked(roots)?;
        let mut present = self.lock();
        if *present != roots {
            *present = roots;
            drop(present);
            self.0.changed.send_replace(());
        }
        Ok(())
    }

    /// Adds a root, in the place of the one with the same URI if there is one.
    pub fn add(&self, root: Root) -> Result<()> {
        sound(&root.uri)?;
        let mut present = self.lock();
        match present.iter_mut().find(|one| one.uri == root.uri) {
            Some(same) if *same == root => return Ok(()),
            Some(same) => *same = root,
            None => present.push(root),
        }
        drop(present);
        self.0.changed.send_replace(());
        Ok(())
    }

    /// Takes the root with this URI out; gives it back if it was there.
    pub fn remove(&self, uri: &str) -> Option<Root> {
        let mut present = self.lock();
        let at = present.iter().position(|one| one.uri == uri)?;
        let root = present.remove(at);
        drop(present);
        self.0.changed.send_replace(());
        Some(root)
    }

    /// Tells of changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }
}

impl ClientBuilder {
    /// Tells servers where they may work, and that this can change.
    ///
    /// As [`roots`](ClientBuilder::roots), whose place it takes, for a set that is not fixed.
    pub fn root_set(mut self, roots: RootSet) -> ClientBuilder {
        // From here on: a change before the connection is made is told once it is.
        self.root_changes = Some(roots.changes());
        self.callbacks.with_root_set(roots);
        self
    }
}

/// Tells each legacy connection of a client when the set has changed, until the client is closed.
pub(crate) async fn herald(
    mut changes: watch::Receiver<()>,
    mut states: ConnectionStates,
    supervisor: Weak<Supervisor>,
) {
    // A change while there is no connection is told on the next: its server may have asked for
    // the roots before the change.
    let (mut ready, mut untold) = (false, false);
    loop {
        tokio::select! {
            state = states.next() => match state {
                None | Some(ConnectionState::Closed { .. }) => return,
                Some(state) => ready = matches!(state, ConnectionState::Ready { .. }),
            },
            changed = changes.changed() => match changed {
                Ok(()) => untold = true,
                Err(_) => return,
            },
        }
        if !(ready && untold) {
            continue;
        }
        let Some(link) = supervisor.upgrade().map(|supervisor| supervisor.link()) else { return };
        untold = false;
        if Method::RootsListChanged.sent_by_client(link.revision()) {
            // The connection is not kept open for it.
            let transport = link.transport.clone();
            drop(link);
            transport.notify(Note::new(Method::RootsListChanged.as_str(), None)).await;
        }
    }
}

fn checked(roots: impl IntoIterator<Item = Root>) -> Result<Vec<Root>> {
    let roots: Vec<Root> = roots.into_iter().collect();
    let mut seen = HashSet::new();
    for root in &roots {
        sound(&root.uri)?;
        if !seen.insert(&root.uri) {
            return Err(Error::refused(format!("the root `{}` is there twice", root.uri)));
        }
    }
    Ok(roots)
}

/// 2025-11-25 client/roots §Root, §Security: a `file://` URI, and no way out of it.
pub(crate) fn sound(uri: &str) -> Result<()> {
    let path = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://"));
    let path = path.and_then(|_| uri[7..].find('/').map(|at| &uri[7 + at..]));
    let Some(path) = path else {
        return Err(Error::refused(format!("a root looks like file:///a/folder, not `{uri}`")));
    };
    let leads_out = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == ".."
    };
    if path.split(['/', '\\']).any(leads_out) {
        return Err(Error::refused(format!("the root `{uri}` leads out of its own place (`..`)")));
    }
    Ok(())
}

impl fmt::Debug for RootSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RootSet").field(&*self.lock()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: roots:uri:file-scheme
    #[test]
    fn a_root_is_a_file_that_stays_where_it_is() {
        for uri in
            ["file:///", "file:///srv/a%20b", "FILE:///x", "file://host/share", "file:///a..b/c"]
        {
            assert!(sound(uri).is_ok(), "{uri}");
        }
        for uri in [
            "",
            "file",
            "file:",
            "file:/srv",
            "file://",
            "https://example.com/",
            "/srv",
            "C:\\x",
            "file:///a/../b",
            "file:///a/%2E%2e/b",
            "file:///a/..",
            "file:///a\\..\\b",
            "filé:///x",
        ] {
            assert!(sound(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn only_what_makes_a_difference_is_a_change() {
        let root = |uri: &str| Root::new(uri);
        let roots = RootSet::new([root("file:///a")]).unwrap();
        let mut changes = roots.changes();
        let mut changed = || {
            let changed = changes.has_changed().unwrap();
            changes.mark_unchanged();
            changed
        };
        roots.add(root("file:///a")).unwrap();
        roots.set([root("file:///a")]).unwrap();
        assert!(roots.remove("file:///none").is_none());
        assert!(roots.add(root("http://a/")).is_err());
        assert!(roots.set([root("file:///b"), root("file:///b")]).is_err());
        assert!(!changed());
        let mut named = root("file:///a");
        named.name = Some("A".into());
        roots.clone().add(named.clone()).unwrap();
        assert!(changed());
        roots.add(root("file:///b")).unwrap();
        assert!(changed());
        assert_eq!(roots.remove("file:///b"), Some(root("file:///b")));
        assert!(changed());
        assert_eq!(roots.roots(), [named]);
        roots.set([]).unwrap();
        assert!(changed() && roots.roots().is_empty());
    }
}
