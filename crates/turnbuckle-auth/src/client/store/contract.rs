//! Owns what every store must pass. Does not own the stores.

use std::time::Duration;

use super::{GrantStore, StoreKey, Swap, Version};
use crate::{AuthErrorKind, Secret};

const LONGEST: Duration = Duration::from_secs(60);

/// `one` and `other` see the same records, as two processes would.
pub(super) async fn holds(one: &dyn GrantStore, other: &dyn GrantStore) {
    swaps(one, other).await;
    leases(one, other).await;
}

async fn swaps(one: &dyn GrantStore, other: &dyn GrantStore) {
    let key = StoreKey::grant("https://mcp.example.com/mcp");
    let sibling = StoreKey::registration("https://mcp.example.com/mcp");
    assert!(one.load(&key).await.unwrap().is_none());
    let nobody = Some(Version::new("nobody"));
    assert_eq!(one.swap(&key, nobody.clone(), Some(secret("x"))).await.unwrap(), Swap::Conflict);
    assert_eq!(one.swap(&key, nobody, None).await.unwrap(), Swap::Conflict);

    let first = done(one.swap(&key, None, Some(secret("first"))).await.unwrap());
    assert_eq!(read(other, &key).await, Some((first.clone(), "first".to_owned())));
    assert!(other.load(&sibling).await.unwrap().is_none());
    assert_eq!(other.swap(&key, None, Some(secret("x"))).await.unwrap(), Swap::Conflict);

    // Texts of every kind come back as they went.
    let text = "{\"a\":\"\u{e9}\\n\"}\nsecond line\n\n";
    let second = done(other.swap(&key, Some(first.clone()), Some(secret(text))).await.unwrap());
    assert_ne!(first, second);
    assert_eq!(read(one, &key).await, Some((second.clone(), text.to_owned())));
    let stale = one.swap(&key, Some(first.clone()), Some(secret("x"))).await.unwrap();
    assert_eq!(stale, Swap::Conflict);
    assert_eq!(read(one, &key).await, Some((second.clone(), text.to_owned())));

    // A version is not used again after a deletion.
    done(one.swap(&key, Some(second), None).await.unwrap());
    assert!(other.load(&key).await.unwrap().is_none());
    let third = done(one.swap(&key, None, Some(secret("third"))).await.unwrap());
    assert_ne!(third, first);
    assert_eq!(other.swap(&key, Some(first), None).await.unwrap(), Swap::Conflict);
    done(other.swap(&key, Some(third), None).await.unwrap());
}

async fn leases(one: &dyn GrantStore, other: &dyn GrantStore) {
    let key = StoreKey::grant("https://leased.example.com/mcp");
    let sibling = StoreKey::grant("https://other.example.com/mcp");
    let held = one.lease(&key, LONGEST).await.unwrap();
    // Another key is free, and records can be read and written meanwhile.
    drop(other.lease(&sibling, LONGEST).await.unwrap());
    let version = done(one.swap(&key, None, Some(secret("leased"))).await.unwrap());
    assert!(other.load(&key).await.unwrap().is_some());
    done(other.swap(&key, Some(version), None).await.unwrap());

    let mut waiting = other.lease(&key, LONGEST);
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(waiting.as_mut().poll(context).is_pending())
    });
    assert!(polled.await, "a lease was given twice");
    drop(held);
    let second = waiting.await.unwrap();

    // Whoever stops waiting does not keep it from others.
    let mut dropped = one.lease(&key, LONGEST);
    std::future::poll_fn(|context| {
        assert!(dropped.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(dropped);
    drop(second);
    drop(one.lease(&key, LONGEST).await.unwrap());
}

async fn read(store: &dyn GrantStore, key: &StoreKey) -> Option<(Version, String)> {
    let stored = store.load(key).await.unwrap()?;
    Some((stored.version, stored.record.expose().to_owned()))
}

fn done(swap: Swap) -> Version {
    match swap {
        Swap::Done(version) => version,
        Swap::Conflict => panic!("the record was another"),
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

#[test]
fn failures_of_stores_say_so() {
    assert_eq!(super::failed("x").kind(), AuthErrorKind::Store);
}

#[test]
fn a_key_shows_its_digest_only() {
    let key = StoreKey::grant("https://mcp.example.com/mcp?token=hush");
    assert!(!format!("{key:?}").contains("hush"));
    assert_eq!(key.digest().len(), 64);
}
