//! Owns the opening words of a connection: the probe, what its outcome leads to, the handshake, and
//! the older wire where that is refused. Does not own what the outcome means: `negotiate` judges it.

use std::sync::Arc;

use super::{
    negotiate::{Observation, ProbeAttempt, Verdict, agreed, judge},
    process::{PATIENCE, silence},
};
use crate::{
    client::{
        ClientBuilder,
        builder::Kind,
        connection::{
            failure::{with_first_wire, with_junk, with_probe},
            handle::ServerFacts,
        },
        handlers::answer::ClientService,
    },
    error::{Error, ErrorKind, Result},
    protocol::stamp::{Stamp, WantsProgress},
    rpc::{Abandon, Exchange, ExchangeEvent, Note, Outgoing, Transport},
};
use turnbuckle_types::{
    DiscoverResult, Encode, Era, Initialize, InitializeResult, Meta, Method, Raw, Revision,
    write_at,
};

impl ClientBuilder {
    pub(crate) async fn negotiate(
        &self,
        transport: &Arc<dyn Transport>,
        answers: &Arc<ClientService>,
        kind: Kind<'_>,
        known: Option<PriorKnowledge>,
    ) -> Result<OpenedConnection> {
        let opened = self.open_wire(transport, answers, kind, known).await;
        opened.map_err(|error| with_junk(error, transport.junk()))
    }

    async fn open_wire(
        &self,
        transport: &Arc<dyn Transport>,
        answers: &Arc<ClientService>,
        kind: Kind<'_>,
        known: Option<PriorKnowledge>,
    ) -> Result<OpenedConnection> {
        if let Some(pinned) = self.pinned {
            return match pinned.era() {
                Era::Modern => Ok(OpenedConnection::ready(self.modern(pinned, answers, None))),
                Era::Legacy => self.open_legacy(transport, answers, pinned, None).await,
            };
        }
        let mut refused = None;
        if let Some(PriorKnowledge { revision, found }) = known {
            let opened = match revision.era() {
                Era::Modern => Ok(OpenedConnection::ready(self.modern(revision, answers, found))),
                Era::Legacy => self.open_legacy(transport, answers, revision, None).await,
            };
            match opened {
                // A server may have become another one since.
                Err(error)
                    if !error.is_closed() && !error.is_timeout() && !error.is_authorization() =>
                {
                    tracing::debug!(%error, "what was known of the server does not hold");
                    refused = Some(error);
                }
                opened => return opened,
            }
        }
        match (self.find_out(transport, answers, kind).await, refused) {
            // Another process would refuse `initialize` too.
            (Ok(OpenedConnection::Respawn(_)), Some(error)) => Err(error),
            (found, _) => found,
        }
    }

    /// Probes, judges, and opens accordingly.
    async fn find_out(
        &self,
        transport: &Arc<dyn Transport>,
        answers: &Arc<ClientService>,
        kind: Kind<'_>,
    ) -> Result<OpenedConnection> {
        let mut revision = Revision::LATEST;
        let mut attempt = ProbeAttempt::First;
        loop {
            let mut probe = self.probe(transport, revision);
            let (observation, failure) = self.observe(&mut probe, kind).await;
            // Only of a process does silence or its end say anything about what it speaks.
            let is_process = matches!(kind, Kind::Process(_));
            let no_verdict = match &observation {
                Observation::Ended => !is_process,
                #[cfg(feature = "http")]
                Observation::Silence => matches!(kind, Kind::Http),
                _ => false,
            };
            if no_verdict {
                return Err(failure.unwrap_or_else(|| self.silent(&observation)));
            }
            match judge(&observation, revision, &Revision::ALL, attempt) {
                Verdict::Modern(revision, found) => {
                    return Ok(OpenedConnection::ready(self.modern(revision, answers, *found)));
                }
                Verdict::Probe(common) => (revision, attempt) = (common, ProbeAttempt::Second),
                Verdict::None => {
                    return Err(failure.unwrap_or_else(|| self.silent(&observation)));
                }
                // A process that the probe broke never answers anything else.
                Verdict::Legacy(offered)
                    if is_process && matches!(observation, Observation::Silence) =>
                {
                    return Ok(OpenedConnection::Respawn(offered));
                }
                Verdict::Legacy(offered) => {
                    // After silence the probe stays open: a slow answer may still win.
                    let open = matches!(observation, Observation::Silence).then_some(probe);
                    return match self.open_legacy(transport, answers, offered, open).await {
                        // Its answer to the probe was its last.
                        Err(error) if is_process && error.is_closed() => {
                            Ok(OpenedConnection::Respawn(offered))
                        }
                        opened => opened.map_err(|error| with_probe(error, &observation)),
                    };
                }
                Verdict::Respawn(offered) => return Ok(OpenedConnection::Respawn(offered)),
                Verdict::Fail(why) => return Err(Error::new(ErrorKind::Connect, why)),
            }
        }
    }

    /// Whether anyone answers at all, whatever they say.
    #[cfg(feature = "http")]
    pub(crate) async fn is_there(
        &self,
        transport: &Arc<dyn Transport>,
        revision: Revision,
    ) -> Result<()> {
        let mut probe = self.probe(transport, revision);
        let (observation, failure) = self.observe(&mut probe, Kind::Http).await;
        let gone = match &observation {
            Observation::Ended | Observation::Silence | Observation::Unread => true,
            Observation::Status(status) => matches!(status, 502..=504),
            Observation::Answered(_) | Observation::Refused(..) => false,
        };
        if gone { Err(failure.unwrap_or_else(|| self.silent(&observation))) } else { Ok(()) }
    }

    fn probe(&self, transport: &Arc<dyn Transport>, revision: Revision) -> Exchange {
        let stamp = self.stamp(revision);
        let stamped = stamp.apply("", &Meta::new(), WantsProgress::No);
        let request = opening(Method::Discover, stamped.params);
        #[cfg(feature = "http")]
        let request = Outgoing {
            mirror: crate::rpc::Mirror { revision: Some(revision), ..Default::default() },
            ..request
        };
        transport.open(request)
    }

    async fn observe(&self, probe: &mut Exchange, kind: Kind<'_>) -> (Observation, Option<Error>) {
        let answered = if let Kind::Process(Some(input)) = kind {
            let patience = self.probe_timeout.min(PATIENCE);
            tokio::select! {
                biased;
                answered = answer(probe) => Ok(answered),
                silent = silence(patience, self.connect_timeout, || input.is_unread()) => Err(silent),
            }
        } else {
            let answered = self.answering.within(self.probe_timeout, answer(probe)).await;
            answered.map_err(|_| Observation::Silence)
        };
        match answered {
            Err(silent) => (silent, None),
            Ok(Ok(raw)) => (Observation::Answered(raw), None),
            Ok(Err(error)) => match error.as_rpc() {
                Some(rpc) => {
                    let observation = Observation::Refused(rpc.clone(), error.status());
                    (observation, Some(error))
                }
                None if matches!(
                    error.kind(),
                    ErrorKind::Http | ErrorKind::AuthorizationRequired
                ) =>
                {
                    (Observation::Status(error.status().unwrap_or(401)), Some(error))
                }
                None if error.kind() != ErrorKind::Protocol => (Observation::Ended, Some(error)),
                // An answer that can't be read is an answer that is not modern.
                None => (Observation::Answered(Raw::null()), Some(error)),
            },
        }
    }

    fn modern(
        &self,
        revision: Revision,
        answers: &ClientService,
        found: Option<DiscoverResult>,
    ) -> (Stamp, ServerFacts) {
        let _ = answers.revision.set(revision);
        #[cfg(feature = "http")]
        let discovered = found.as_ref().map(|found| Raw::at(found, revision));
        let facts = match found {
            Some(found) => ServerFacts {
                #[cfg(feature = "http")]
                discovered,
                info: found.meta.server_info().ok().flatten(),
                capabilities: Some(found.capabilities),
                instructions: found.instructions,
            },
            None => ServerFacts::default(),
        };
        (self.stamp(revision), facts)
    }

    /// Opens with `initialize`, on whichever wire of the server takes it.
    async fn open_legacy(
        &self,
        transport: &Arc<dyn Transport>,
        answers: &Arc<ClientService>,
        offered: Revision,
        probe: Option<Exchange>,
    ) -> Result<OpenedConnection> {
        let refused = match self.handshake(transport, answers, offered, probe).await {
            Ok(opened) => return Ok(OpenedConnection::ready(opened)),
            Err(error) => error,
        };
        // 2025-11-25 transports §Backwards Compatibility: what may be an older server.
        let old = matches!(refused.status(), Some(400 | 404 | 405));
        let Some(other) = old.then(|| transport.fall_back()).flatten() else {
            return Err(refused);
        };
        let other = match other.await {
            Ok(other) => other,
            Err(error) => return Err(with_first_wire(error, &refused)),
        };
        let guard = CloseUnlessOpened(Some(other.clone()));
        let opened = self
            .handshake(&other, answers, offered, None)
            .await
            .map_err(|error| with_first_wire(error, &refused))?;
        guard.keep();
        Ok(OpenedConnection::Ready(Box::new(opened), Some(other)))
    }

    /// Opens with `initialize`. A probe that is still open wins if its answer comes first.
    pub(crate) async fn handshake(
        &self,
        transport: &Arc<dyn Transport>,
        answers: &Arc<ClientService>,
        offered: Revision,
        mut probe: Option<Exchange>,
    ) -> Result<(Stamp, ServerFacts)> {
        let declared = self.callbacks.declared();
        let params = Initialize::new(offered.as_str(), declared, self.info.clone());
        let mut initialize = transport.open(opening(Method::Initialize, text(&params, offered)));
        let mut ran_out = std::pin::pin!(self.answering.ran_out(self.connect_timeout));
        loop {
            tokio::select! {
                biased;
                late = answer_of(&mut probe) => {
                    let came = probe.take().and_then(|probe| probe.arrived());
                    let Ok(raw) = late else { continue };
                    // Both may have come in one breath: the first word counts.
                    if initialize.arrived().is_some_and(|first| Some(first) < came) {
                        continue;
                    }
                    let observation = Observation::Answered(raw);
                    let verdict = judge(&observation, Revision::LATEST, &Revision::ALL, ProbeAttempt::Second);
                    if let Verdict::Modern(revision, found) = verdict {
                        return Ok(self.modern(revision, answers, *found));
                    }
                }
                opened = answer(&mut initialize) => {
                    return self.opened(transport, answers, offered, opened?).await;
                }
                () = &mut ran_out => {
                    let reason = crate::error::timed_out(self.connect_timeout);
                    return Err(Error::timeout(Method::Initialize.as_str(), &reason));
                }
            }
        }
    }

    async fn opened(
        &self,
        transport: &Arc<dyn Transport>,
        answers: &Arc<ClientService>,
        offered: Revision,
        raw: Raw,
    ) -> Result<(Stamp, ServerFacts)> {
        let result: InitializeResult = raw.decode().map_err(|error| {
            crate::client::call::undecodable(Method::Initialize.as_str(), &error)
        })?;
        let revision = agreed(&result, offered, self.pinned, &Revision::ALL)
            .map_err(|why| Error::new(ErrorKind::Connect, why))?;
        let _ = answers.revision.set(revision);
        transport.agreed(revision);
        transport.notify(Note::new(Method::Initialized.as_str(), None)).await;
        transport.established().await;
        let facts = ServerFacts {
            info: Some(result.server_info),
            capabilities: Some(result.capabilities),
            instructions: result.instructions,
            #[cfg(feature = "http")]
            discovered: None,
        };
        Ok((self.stamp(revision), facts))
    }

    fn silent(&self, observation: &Observation) -> Error {
        match observation {
            Observation::Silence => {
                let reason = crate::error::timed_out(self.probe_timeout);
                Error::timeout(Method::Discover.as_str(), &reason)
            }
            Observation::Unread => {
                let reason = crate::error::timed_out(self.connect_timeout);
                Error::timeout(Method::Discover.as_str(), &reason)
            }
            _ => Error::new(ErrorKind::Connect, "the server ended the connection"),
        }
    }
}

/// What is known of a server before it is asked.
pub(crate) struct PriorKnowledge {
    pub(crate) revision: Revision,
    pub(crate) found: Option<DiscoverResult>,
}

/// How far the opening words got.
pub(crate) enum OpenedConnection {
    /// On this wire, or on another one to the same server.
    Ready(Box<(Stamp, ServerFacts)>, Option<Arc<dyn Transport>>),
    Respawn(Revision),
}

impl OpenedConnection {
    fn ready(opened: (Stamp, ServerFacts)) -> OpenedConnection {
        OpenedConnection::Ready(Box::new(opened), None)
    }
}

/// A connection that is given up while it is being made is closed.
pub(crate) struct CloseUnlessOpened(pub(crate) Option<Arc<dyn Transport>>);

impl CloseUnlessOpened {
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseUnlessOpened {
    fn drop(&mut self) {
        if let Some(transport) = &self.0 {
            transport.close_now();
        }
    }
}

/// A request that opens a connection: nobody is told if it is abandoned.
fn opening(method: Method, params: String) -> Outgoing {
    let abandon = if method.row().abandonable { Abandon::Signal } else { Abandon::Silence };
    Outgoing { abandon, ..Outgoing::new(method.as_str(), params) }
}

fn text(params: &impl Encode, revision: Revision) -> String {
    let mut text = Vec::new();
    write_at(params, revision, &mut text);
    // The encoder writes text.
    String::from_utf8(text).unwrap_or_default()
}

async fn answer(exchange: &mut Exchange) -> Result<Raw> {
    loop {
        if let ExchangeEvent::Done(result) = exchange.next().await {
            return result;
        }
    }
}

async fn answer_of(exchange: &mut Option<Exchange>) -> Result<Raw> {
    match exchange {
        Some(exchange) => answer(exchange).await,
        None => std::future::pending().await,
    }
}
