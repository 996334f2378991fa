//! Owns for how long, and by whom, lists and resources may be kept: what authors say, and what
//! holds where they say nothing. Does not own the results that carry it.

use std::time::Duration;

use crate::server::{Server, items::ItemKind};
use turnbuckle_types::{CacheScope, ReadResourceResult};

/// For how long a list that is written into the program may be kept.
const FIXED: Duration = Duration::from_secs(5 * 60);

/// For how long clients may keep what they were given, and whether others may share it. Clients of
/// revisions that know no such thing are not told.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Server, resource, server::Cache};
/// async fn readme() -> &'static str { "# Read me" }
/// let minute = Cache::new(Duration::from_secs(60));
/// let server = Server::new("demo", "1.0")
///     .resource(resource("demo://readme", readme).cache(minute.public()));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Cache {
    time: Duration,
    scope: Option<CacheScope>,
}

impl Cache {
    /// For this long; zero means that it is to be asked for again each time. Who may share it stays
    /// as it was.
    pub const fn new(time: Duration) -> Cache {
        Cache { time, scope: None }
    }

    /// It is the same for everyone, so that proxies and other users may share it.
    pub const fn public(self) -> Cache {
        Cache { scope: Some(CacheScope::Public), ..self }
    }

    /// It is for whoever asked.
    pub const fn private(self) -> Cache {
        Cache { scope: Some(CacheScope::Private), ..self }
    }
}

/// What a server says about keeping its answers.
#[derive(Clone, Default)]
pub(crate) struct CachePolicy {
    everything: Option<Cache>,
    lists: [Option<Cache>; ItemKind::COUNT],
    /// Who shares what nobody said anything about.
    sharing: SharedCacheScope,
}

/// Who shares answers that are the same for everyone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SharedCacheScope {
    #[default]
    Anyone,
    /// Not everyone may ask.
    Nobody,
}

/// What a result says about keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheHint {
    pub(crate) ttl_ms: u64,
    pub(crate) scope: CacheScope,
}

/// How far an answer is the same tomorrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// It is written into the program.
    Fixed,
    /// It may change while the server runs.
    Changing,
    /// It is made anew each time, by who knows what.
    Made,
}

/// Whether a visibility rule decides who sees what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListAudience {
    Everyone,
    /// It is never shared, whatever anyone says.
    Caller,
}

impl CachePolicy {
    /// Of a server that not everyone may ask.
    #[cfg(all(feature = "auth", feature = "http"))]
    pub(crate) fn protected(self) -> CachePolicy {
        CachePolicy { sharing: SharedCacheScope::Nobody, ..self }
    }

    pub(crate) fn of_list(
        &self,
        kind: ItemKind,
        nature: Nature,
        audience: ListAudience,
    ) -> CacheHint {
        self.hint(self.lists[kind as usize], nature, audience)
    }

    pub(crate) fn of_discovery(&self, nature: Nature) -> CacheHint {
        self.hint(None, nature, ListAudience::Everyone)
    }

    /// Says what the handler of a resource did not say itself, and unsays what it can't know.
    pub(crate) fn complete(
        &self,
        result: &mut ReadResourceResult,
        own: Option<Cache>,
        audience: ListAudience,
    ) {
        let hint = self.hint(own, Nature::Made, audience);
        result.ttl_ms.get_or_insert(hint.ttl_ms);
        result.cache_scope.get_or_insert(hint.scope);
        if audience == ListAudience::Caller {
            result.cache_scope = Some(CacheScope::Private);
        }
    }

    fn hint(&self, own: Option<Cache>, nature: Nature, audience: ListAudience) -> CacheHint {
        let (time, scope) = match nature {
            Nature::Fixed => (FIXED, CacheScope::Public),
            Nature::Changing => (Duration::ZERO, CacheScope::Public),
            Nature::Made => (Duration::ZERO, CacheScope::Private),
        };
        let scope =
            if self.sharing == SharedCacheScope::Nobody { CacheScope::Private } else { scope };
        let said = [own, self.everything].into_iter().flatten();
        let time = said.clone().next().map_or(time, |cache| cache.time);
        let scope = said.clone().find_map(|cache| cache.scope).unwrap_or(scope);
        CacheHint {
            ttl_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            scope: if audience == ListAudience::Caller { CacheScope::Private } else { scope },
        }
    }
}

impl Server {
    /// For how long all lists and resources may be kept that nothing else is said of. Unless told
    /// so, what is written into the program is kept for five minutes, by everyone if no visibility
    /// rule concerns it; the lists of a server whose [`registry`](Server::registry) was taken, and
    /// what handlers make, are not kept.
    ///
    /// What a visibility rule concerns is never [`public`](Cache::public).
    #[must_use]
    #[track_caller]
    pub fn cache(self, cache: Cache) -> Server {
        self.changed(|server| server.caching.everything = Some(cache))
    }

    /// For how long the list of one kind of things may be kept.
    #[must_use]
    #[track_caller]
    pub fn cache_for(self, list: ItemKind, cache: Cache) -> Server {
        self.changed(|server| server.caching.lists[list as usize] = Some(cache))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Cache = Cache::new(Duration::from_secs(60));

    fn hint(ttl_ms: u64, scope: CacheScope) -> CacheHint {
        CacheHint { ttl_ms, scope }
    }

    #[test]
    fn where_nothing_is_said_it_depends_on_what_it_is() {
        let caching = CachePolicy::default();
        for (nature, ttl_ms, scope) in [
            (Nature::Fixed, 300_000, CacheScope::Public),
            (Nature::Changing, 0, CacheScope::Public),
            (Nature::Made, 0, CacheScope::Private),
        ] {
            let of = |audience| caching.of_list(ItemKind::Tool, nature, audience);
            assert_eq!(of(ListAudience::Everyone), hint(ttl_ms, scope), "{nature:?}");
            assert_eq!(of(ListAudience::Caller), hint(ttl_ms, CacheScope::Private), "{nature:?}");
            assert_eq!(caching.of_discovery(nature), hint(ttl_ms, scope), "{nature:?}");
        }
    }

    #[test]
    fn what_is_said_closer_wins_field_by_field() {
        let server = Server::new("s", "1")
            .cache(Cache::new(Duration::from_secs(1)).public())
            .cache_for(ItemKind::Prompt, MINUTE);
        let of = |kind, audience| server.caching.of_list(kind, Nature::Made, audience);
        let public = CacheScope::Public;
        assert_eq!(of(ItemKind::Tool, ListAudience::Everyone), hint(1_000, public));
        assert_eq!(of(ItemKind::Prompt, ListAudience::Everyone), hint(60_000, public));
        let private = hint(60_000, CacheScope::Private);
        assert_eq!(of(ItemKind::Prompt, ListAudience::Caller), private, "it would be shared");
        let forever = server.cache(Cache::new(Duration::MAX));
        assert_eq!(forever.caching.of_discovery(Nature::Fixed).ttl_ms, u64::MAX);
    }

    #[test]
    fn a_handler_has_the_last_word() {
        let caching = CachePolicy { everything: Some(MINUTE.public()), ..CachePolicy::default() };
        let mut result = ReadResourceResult::new([]);
        result.ttl_ms = Some(7);
        let own = Cache::new(Duration::ZERO).private();
        caching.complete(&mut result, Some(own), ListAudience::Everyone);
        assert_eq!((result.ttl_ms, result.cache_scope), (Some(7), Some(CacheScope::Private)));
        let mut result = ReadResourceResult::new([]);
        result.cache_scope = Some(CacheScope::Public);
        caching.complete(&mut result, None, ListAudience::Caller);
        assert_eq!(result.cache_scope, Some(CacheScope::Private), "but not over what is hidden");
        let mut result = ReadResourceResult::new([]);
        result.cache_scope = Some(CacheScope::Private);
        caching.complete(&mut result, None, ListAudience::Everyone);
        assert_eq!((result.ttl_ms, result.cache_scope), (Some(60_000), Some(CacheScope::Private)));
    }
}
