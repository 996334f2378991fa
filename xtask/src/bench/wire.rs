//! The wires, and the candidates that are compared on each.

use super::OURS;

/// One way of speaking to a server, with everything that is measured on it.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The heading, and the key in `bench/targets.toml`.
    pub(crate) name: &'static str,
    /// The candidates, in the order in which they take turns.
    pub(crate) candidates: &'static [&'static str],
    /// The reference of all ratios.
    pub(crate) limit: &'static str,
    /// Rmcp tuned; the first that has a value counts.
    pub(crate) tuned: &'static [&'static str],
    /// Rmcp as its README sets it up.
    pub(crate) readme: &'static str,
    /// The runs of the load generator.
    pub(crate) loads: &'static [Load],
    /// The runs of the client drivers.
    pub(crate) clients: &'static [ClientLoad],
    /// The scenario of the sizes of programs.
    pub(crate) sizes: &'static str,
}

/// Scenarios of the load generator and their candidates.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) scenarios: &'static [&'static str],
    pub(crate) candidates: &'static [&'static str],
}

/// One run of a client driver.
#[derive(Debug)]
pub(crate) struct ClientLoad {
    pub(crate) scenario: &'static str,
    pub(crate) era: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) callers: &'static str,
    pub(crate) calls: &'static str,
    /// Candidates that do not take part.
    pub(crate) without: &'static [&'static str],
}

impl ClientLoad {
    /// The arguments of the server besides its address.
    pub(crate) fn server_arguments(&self) -> &'static [&'static str] {
        if self.mode == "cached" { KEPT_LIST } else { &[] }
    }
}

/// Has the bare limit list 8 tools, which its clients may keep.
pub(crate) const KEPT_LIST: &[&str] = &["--kept-list", "8"];

const fn client(
    scenario: &'static str,
    mode: &'static str,
    callers: &'static str,
    calls: &'static str,
) -> ClientLoad {
    ClientLoad { scenario, era: "modern", mode, callers, calls, without: &[] }
}

/// A list that is read again and again; the bare limits keep none.
const fn cached(scenario: &'static str) -> ClientLoad {
    let without = &["limit-pipe", "limit-hyper"];
    ClientLoad { without, ..client(scenario, "cached", "1", "20000") }
}

/// A thousand calls dropped at once in the legacy era. As its README sets it up, rmcp runs 16 of
/// them at a time, which the modern era shows already, and only time is lost on it here.
const fn legacy_cancel(scenario: &'static str) -> ClientLoad {
    let without = &["rmcp-readme"];
    ClientLoad { era: "legacy", without, ..client(scenario, "cancel", "1", "1000") }
}

/// The wires, in the order of the page.
pub(crate) const WIRES: &[&Wire] = &[&STDIO, &HTTP];

pub(crate) const STDIO: Wire = Wire {
    name: "stdio",
    candidates: &["limit-pipe", "limit-spawn", "rmcp-arc-nd", "rmcp-readme", OURS],
    limit: "limit-pipe",
    tuned: &["rmcp-arc-nd"],
    readme: "rmcp-readme",
    loads: &[Load {
        scenarios: &[
            "stdio-echo:64",
            "stdio-echo:1",
            "stdio-progress:1000",
            "stdio-cancel:1000",
            "stdio-large:1",
            "stdio-list:8",
            "stdio-cold:10",
        ],
        candidates: &["limit-pipe", "limit-spawn", "rmcp-arc-nd", "rmcp-readme", OURS],
    }],
    clients: &[
        client("client-calls:64", "calls", "64", "0"),
        client("client-cancel:1000", "cancel", "1", "1000"),
        legacy_cancel("client-legacy-cancel:1000"),
        cached("client-cached"),
    ],
    sizes: "sizes",
};

pub(crate) const HTTP: Wire = Wire {
    name: "Streamable HTTP",
    candidates: &["limit-hyper", "rmcp-arc-nd", "rmcp-json-nd", "rmcp-readme", OURS],
    limit: "limit-hyper",
    tuned: &["rmcp-json-nd", "rmcp-arc-nd"],
    readme: "rmcp-readme",
    loads: &[
        Load {
            scenarios: &[
                "http-echo:32",
                "http-echo:1",
                "http-echo:256",
                "http-cancel:1000",
                "http-listen:1000",
                "http-list:8",
            ],
            candidates: &["limit-hyper", "rmcp-json-nd", "rmcp-readme", OURS],
        },
        // JSON answers carry no progress.
        Load {
            scenarios: &["http-progress:1000"],
            candidates: &["limit-hyper", "rmcp-arc-nd", "rmcp-readme", OURS],
        },
    ],
    clients: &[
        client("http-client-calls:1", "calls", "1", "0"),
        client("http-client-calls:64", "calls", "64", "0"),
        client("http-client-cancel:1000", "cancel", "1", "1000"),
        legacy_cancel("http-client-legacy-cancel:1000"),
        cached("http-client-cached"),
        client("http-client-unwritten:1000", "unwritten", "1", "1000"),
    ],
    sizes: "http-sizes",
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::rows::Rows, *};

    #[test]
    fn every_row_is_measured_by_something() {
        for wire in WIRES {
            let mut scenarios: BTreeSet<&str> =
                wire.loads.iter().flat_map(|load| load.scenarios).copied().collect();
            scenarios.extend(wire.clients.iter().map(|client| client.scenario));
            scenarios.insert(wire.sizes);
            scenarios.insert(super::super::bridge::SCENARIO);
            for row in &Rows::of(wire).times {
                assert!(scenarios.contains(&*row.scenario), "{}: {}", row.name, row.scenario);
            }
        }
    }
}
