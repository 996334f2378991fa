//! How a client gets a [`Grant`], as a state machine that does nothing by itself: it says what to
//! do next, and is told what came of it.
//!
//! Owns the order of the legs and what each passes on to the next. Does not own any input or
//! output, nor when a grant is needed.

mod discover;
mod machine;
mod person;
mod plan;
mod tokens;

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, fmt, mem, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use zeroize::Zeroizing;

use self::{discover::DiscoveryTarget, plan::Plan, tokens::PendingTokenRequest};
use super::{
    code::Attempt,
    grant::{Grant, Registration, TokenAuth},
    random::Random,
    settings::Settings,
    text::without_secrets,
};
use crate::{AuthError, AuthErrorKind, Challenge, Clock, Secret, SigningKey};

/// What to do next.
#[non_exhaustive]
pub enum Step {
    /// Send this, follow no redirect of a `POST`, and say what was answered:
    /// [`Answer::Response`] or [`Answer::Unreachable`].
    Send(Request<Bytes>),
    /// Look for what this client registered at that issuer before: [`Answer::Recalled`].
    Recall(String),
    /// Show someone an address and wait until they were sent back: [`Answer::CalledBack`] or
    /// [`Answer::NotLoggedIn`].
    LogIn(LoginRequest),
    /// Fetch what says who the person or this program is: [`Answer::Identity`] or
    /// [`Answer::NotLoggedIn`].
    Identity(IdentityRequest),
    /// There it is, with tokens. Keep it, and its registration under its issuer.
    Done(Box<Grant>),
    /// It can't be had.
    Failed(AuthError),
}

/// What came of a [`Step`].
#[non_exhaustive]
pub enum Answer {
    /// This was answered.
    Response(Response<Bytes>),
    /// Nothing was answered, or it was not allowed to ask.
    Unreachable(AuthError),
    /// What this client registered at that issuer before, if it did.
    Recalled(Option<Registration>),
    /// The whole address that someone was sent back to, or its query.
    CalledBack(String),
    /// Nobody logged in.
    NotLoggedIn(AuthError),
    /// Who the person or this program is.
    Identity(Secret),
}

/// Where someone logs in.
#[derive(Clone)]
pub struct LoginRequest {
    /// The address to show.
    pub url: String,
    /// Where they are sent back to.
    pub redirect_uri: String,
    /// Who they log in at.
    pub issuer: String,
}

/// What an identity is needed for.
#[derive(Clone, Debug)]
pub struct IdentityRequest {
    /// Whose.
    pub kind: IdentityKind,
    /// The authorization server that is asked with it, or with what it is exchanged for.
    pub audience: String,
    /// The protected server.
    pub resource: Option<String>,
}

/// Whose identity is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityKind {
    /// A person's, from their organization.
    Enterprise,
    /// This program's, from the platform that it runs on.
    Workload,
}

/// What a flow is made with.
#[derive(Clone, Debug)]
pub struct Tools {
    /// What the user decided.
    pub settings: Arc<Settings>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What nobody can guess.
    pub random: Arc<dyn Random>,
}

/// What a grant is needed for.
///
/// ```
/// use turnbuckle_auth::flow::{Asked, Renewal};
/// let asked = Asked::new("https://mcp.example.com/mcp");
/// assert_eq!(asked.renewal, Renewal::Anew);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Asked {
    /// The protected server.
    pub server_url: String,
    /// What it asked for.
    pub challenge: Option<Challenge>,
    /// What there was before: what it asked for is asked for again, and more.
    pub previous: Option<Grant>,
    /// Where someone who logs in is sent back to. Without it nobody is asked to:
    /// [`AuthErrorKind::Required`] instead.
    pub redirect_uri: Option<String>,
    /// Whether what there was before is renewed first.
    pub renewal: Renewal,
}

/// Whether what there was before is renewed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// No: it is good for too little, or for nothing.
    #[default]
    Anew,
    /// Yes, if it comes from the authorization server that the protected server names now, and was
    /// for all that is needed.
    Refresh,
}

/// One way from nothing to a [`Grant`].
///
/// ```
/// use std::sync::Arc;
/// use turnbuckle_auth::{Settings, SystemClock, SystemRandom};
/// use turnbuckle_auth::flow::{Answer, Asked, Flow, Step, Tools};
///
/// let tools = Tools {
///     settings: Arc::new(Settings::default()),
///     clock: Arc::new(SystemClock),
///     random: Arc::new(SystemRandom),
/// };
/// let (mut flow, step) = Flow::authorize(tools, Asked::new("https://mcp.example.com/mcp"));
/// let Step::Send(request) = step else { panic!() };
/// assert_eq!(request.uri().path(), "/.well-known/oauth-protected-resource/mcp");
/// let step = flow.answer(Answer::Response(http::Response::builder().status(500).body(Default::default()).unwrap()));
/// assert!(matches!(step, Step::Failed(_)));
/// ```
pub struct Flow {
    tools: Tools,
    asked: Asked,
    state: State,
}

/// What is waited for, with all that was learnt on the way there.
enum State {
    /// A document of the protected server; and where else it may be.
    Resource { at: String, left: VecDeque<String> },
    /// A document of an authorization server; and where else it may be.
    Server { place: DiscoveryTarget, at: String, left: VecDeque<String> },
    /// What was registered before.
    Recall(Plan),
    /// What comes of registering.
    Register(Plan, TokenAuth),
    /// Someone to come back from logging in.
    LogIn(Draft, Attempt),
    /// Who someone is.
    Identity(Draft),
    /// The right to ask the authorization server.
    Exchange(Draft, PendingTokenRequest),
    /// A token.
    Token(Draft, PendingTokenRequest),
    /// A token for an older one; the plan is for when it is no longer taken.
    Refresh(Draft, PendingTokenRequest, Option<Box<Plan>>),
    /// Nothing more.
    Ended,
}

/// A grant that lacks only its tokens.
struct Draft {
    grant: Grant,
    /// The key of `grant.proof_key`, if tokens are bound to one.
    proof: Option<SigningKey>,
}

type Next = Result<Step, AuthError>;

impl Asked {
    /// For the first time.
    pub fn new(server_url: impl Into<String>) -> Asked {
        Asked {
            server_url: server_url.into(),
            challenge: None,
            previous: None,
            redirect_uri: None,
            renewal: Renewal::Anew,
        }
    }
}

impl Flow {
    /// Finds out whom to ask, becomes a client there, and gets tokens.
    pub fn authorize(tools: Tools, asked: Asked) -> (Flow, Step) {
        let mut flow = Flow { tools, asked, state: State::Ended };
        let next = flow.discover();
        let step = flow.step(next);
        (flow, step)
    }

    /// Renews a grant's tokens where they came from, without asking anyone anything else.
    pub fn refresh(tools: Tools, grant: Grant) -> (Flow, Step) {
        let mut flow = Flow { tools, asked: Asked::new(""), state: State::Ended };
        let next = flow.refresh_with(grant, None);
        let step = flow.step(next);
        (flow, step)
    }

    /// Goes on with what came of the last step. After [`Step::Done`] and [`Step::Failed`] there is
    /// nothing to go on with, and it fails.
    pub fn answer(&mut self, answer: Answer) -> Step {
        let state = mem::replace(&mut self.state, State::Ended);
        let next = match (state, answer) {
            (State::Ended, _) => Err(out_of_order()),
            (_, Answer::Unreachable(error) | Answer::NotLoggedIn(error)) => Err(error),
            (State::Resource { at, left }, Answer::Response(response)) => {
                self.resource_answered(&at, left, &response)
            }
            (State::Server { place, at, left }, Answer::Response(response)) => {
                self.server_answered(place, &at, left, &response)
            }
            (State::Recall(plan), Answer::Recalled(known)) => self.recalled(plan, known),
            (State::Register(plan, asked), Answer::Response(response)) => {
                self.registered(plan, asked, &response)
            }
            (State::LogIn(draft, attempt), Answer::CalledBack(answer)) => {
                self.called_back(draft, &attempt, &Zeroizing::new(answer))
            }
            (State::Identity(draft), Answer::Identity(identity)) => {
                self.identified(draft, &identity)
            }
            (State::Exchange(draft, asking), Answer::Response(response)) => {
                self.exchanged(draft, asking, &response)
            }
            (State::Token(draft, asking), Answer::Response(response)) => {
                self.token_given(draft, asking, &response)
            }
            (State::Refresh(draft, asking, plan), Answer::Response(response)) => {
                self.refreshed(draft, asking, plan, &response)
            }
            _ => Err(out_of_order()),
        };
        self.step(next)
    }

    /// Who the client is at which issuer, from the first step that relies on it. One that registered
    /// itself is worth keeping even if nobody logs in, so that it need not do so again.
    pub fn registration(&self) -> Option<(&str, &Registration)> {
        match &self.state {
            State::LogIn(draft, _)
            | State::Identity(draft)
            | State::Exchange(draft, _)
            | State::Token(draft, _)
            | State::Refresh(draft, _, _) => Some((&draft.grant.issuer, &draft.grant.registration)),
            State::Resource { .. }
            | State::Server { .. }
            | State::Recall(_)
            | State::Register(..)
            | State::Ended => None,
        }
    }

    /// Whom the client proves itself to with the next request, and as whom.
    pub(crate) fn proves(&self) -> Option<(&str, &Registration)> {
        match &self.state {
            State::Token(..) | State::Refresh(..) => self.registration(),
            _ => None,
        }
    }

    /// Where a token will be asked for, once someone has logged in.
    pub(crate) fn token_endpoint(&self) -> Option<&str> {
        match &self.state {
            State::LogIn(draft, _) => Some(&draft.grant.endpoints.token),
            _ => None,
        }
    }

    fn step(&mut self, next: Next) -> Step {
        next.unwrap_or_else(|error| {
            self.state = State::Ended;
            Step::Failed(error)
        })
    }

    fn settings(&self) -> &Settings {
        &self.tools.settings
    }

    fn now(&self) -> u64 {
        self.tools.clock.now()
    }
}

/// Says where it stands, and nothing that anyone could use.
impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Resource { .. } => "Resource",
            State::Server { .. } => "Server",
            State::Recall(_) => "Recall",
            State::Register(..) => "Register",
            State::LogIn(..) => "LogIn",
            State::Identity(_) => "Identity",
            State::Exchange(..) => "Exchange",
            State::Token(..) => "Token",
            State::Refresh(..) => "Refresh",
            State::Ended => "Ended",
        };
        f.debug_struct("Flow")
            .field("server_url", &without_secrets(&self.asked.server_url))
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("server_url", &without_secrets(&self.server_url))
            .field("challenge", &self.challenge)
            .field("previous", &self.previous)
            .field("redirect_uri", &self.redirect_uri)
            .field("renewal", &self.renewal)
            .finish()
    }
}

/// Says where a request goes; what is in it may be secret.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Send(request) => f
                .debug_struct("Send")
                .field("method", request.method())
                .field("uri", request.uri())
                .finish_non_exhaustive(),
            Step::Recall(issuer) => f.debug_tuple("Recall").field(issuer).finish(),
            Step::LogIn(request) => f.debug_tuple("LogIn").field(request).finish(),
            Step::Identity(request) => f.debug_tuple("Identity").field(request).finish(),
            Step::Done(grant) => f.debug_tuple("Done").field(grant).finish(),
            Step::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
        }
    }
}

/// Without what the address carries: `state` must not be known to others before it is answered.
impl fmt::Debug for LoginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRequest")
            .field("url", &self.url.split('?').next().unwrap_or_default())
            .field("redirect_uri", &self.redirect_uri)
            .field("issuer", &self.issuer)
            .finish()
    }
}

/// Says of which kind it is; what is in it may be secret.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Response(_) => "Response",
            Answer::Unreachable(_) => "Unreachable",
            Answer::Recalled(_) => "Recalled",
            Answer::CalledBack(_) => "CalledBack",
            Answer::NotLoggedIn(_) => "NotLoggedIn",
            Answer::Identity(_) => "Identity",
        })
    }
}

fn out_of_order() -> AuthError {
    AuthError::new(AuthErrorKind::Settings, "an answer was given that nothing had asked for")
}
