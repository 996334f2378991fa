//! Owns what a program has said about who may speak to its endpoint, and the answer to each
//! request before its body. Does not own the rules: the guard does.

use crate::transport::http::server::{
    answer,
    body::HttpBody,
    security::{
        cors::Cors,
        guard::{Guard, judge_authority},
    },
};
use http::{HeaderMap, Response, StatusCode, Uri, request};

/// The guard of an endpoint, and what it was made from.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    guard: Guard,
    cors: Option<Cors>,
    hosts: Vec<String>,
    origins: Vec<String>,
    readers: Vec<String>,
    wire: HostMeaning,
    body_limit: u64,
    /// What was wrong with what the program said.
    problem: Option<String>,
}

/// What names mean on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HostMeaning {
    Network,
    /// Whoever can open it is here already, whatever name it says.
    Local,
}

impl Gate {
    /// Serves loopback names only, and no body that declares to be longer.
    pub(crate) fn new(body_limit: usize) -> Gate {
        let mut gate = Gate {
            guard: Guard::loopback(),
            cors: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            readers: Vec::new(),
            wire: HostMeaning::Network,
            body_limit: body_limit as u64,
            problem: None,
        };
        gate.build();
        gate
    }

    pub(crate) fn allow_host(&mut self, host: String) {
        self.hosts.push(host);
        self.build();
    }

    pub(crate) fn allow_origin(&mut self, origin: String) {
        self.origins.push(origin);
        self.build();
    }

    /// Lets pages of these origins call and read the answers.
    pub(crate) fn allow_readers(&mut self, origins: impl Iterator<Item = String>) {
        self.readers.extend(origins);
        self.build();
    }

    /// Takes any host: on a socket of this machine it means nothing.
    pub(crate) fn any_host(&mut self) {
        self.wire = HostMeaning::Local;
        self.build();
    }

    /// Whether a public name was stated.
    pub(crate) fn is_public(&self) -> bool {
        !self.hosts.is_empty()
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The answer to a browser that asks whether a page may call.
    pub(crate) fn preflight(&self, head: &request::Parts) -> Option<Response<HttpBody>> {
        let headers = self.cors.as_ref()?.preflight(&head.method, &head.headers)?;
        let mut response = answer::empty(StatusCode::NO_CONTENT);
        *response.headers_mut() = headers;
        Some(response)
    }

    /// The answer to a request that goes no further.
    pub(crate) fn judge(&self, head: &request::Parts) -> Option<Response<HttpBody>> {
        self.guard.judge(&head.method, &head.uri, &head.headers).err().map(answer::refused)
    }

    /// The answer to a POST that goes no further, where what it accepts does not matter.
    #[cfg(feature = "sse-2024")]
    pub(crate) fn judge_posted(&self, head: &request::Parts) -> Option<Response<HttpBody>> {
        self.guard.judge_posted(&head.uri, &head.headers).err().map(answer::refused)
    }

    /// Returns the response to a request that names two hosts.
    pub(crate) fn judge_authority(&self, head: &request::Parts) -> Option<Response<HttpBody>> {
        judge_authority(head).err().map(answer::refused)
    }

    /// The answer to someone who may not ask for anything here.
    pub(crate) fn judge_caller(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Response<HttpBody>> {
        self.guard.judge_caller(uri, headers).err().map(answer::refused)
    }

    /// What the answer gets so that pages may read it, or may not.
    pub(crate) fn sharing(&self, request: &HeaderMap) -> Option<Box<HeaderMap>> {
        self.cors.as_ref().map(|cors| Box::new(cors.headers(request)))
    }

    fn build(&mut self) {
        let mut guard = match self.wire {
            HostMeaning::Network => Guard::loopback(),
            HostMeaning::Local => Guard::any_host(),
        };
        let mut problems = Vec::new();
        for host in &self.hosts {
            problems.extend(guard.allow_host(host).err());
        }
        for origin in &self.origins {
            problems.extend(guard.allow_origin(origin).err());
        }
        let mut cors = Cors::default();
        for origin in &self.readers {
            problems.extend(cors.allow_origin(origin).err());
        }
        guard.allow_origins_of(&cors);
        guard.limit_body(self.body_limit);
        self.cors = (!self.readers.is_empty()).then_some(cors);
        self.problem = (!problems.is_empty()).then(|| problems.join("; "));
        self.guard = guard;
    }
}
