//! The workloads that are counted: requests, how they are sent, and how many.

/// Requests and their number.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) talk: Talk,
    pub(super) sends: Sends,
    /// Tools of the server; zero stands for those of the bench contract.
    pub(super) tools: usize,
    /// Requests at a time; over HTTP each on a connection of its own.
    pub(super) window: usize,
    /// Requests, or conversations, of the short and of the long run.
    pub(super) lengths: [usize; 2],
    pub(super) counts: Counts,
}

impl Workload {
    /// Requests of the short and of the long run of a candidate.
    pub(super) fn lengths_of(&self, candidate: &str) -> [usize; 2] {
        // It creates all tools for each request, with tens of millions of instructions.
        match candidate == "rmcp-readme" && self.tools > 1 {
            true => [4, 20],
            false => self.lengths,
        }
    }
}

/// The counts of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counts {
    /// Instructions and heap per answer.
    Answers,
    /// Instructions per answer.
    Instructions,
    /// The heap that remains of a call whose connection was closed while it ran.
    Remains,
}

/// How the server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Talk {
    Pipes,
    Http,
    /// Over the pipes of our own tools that are compared with each other.
    Handlers,
    /// A client is counted, over the pipes of the bare limit.
    ClientOverPipes,
    /// The same over HTTP.
    ClientOverHttp,
}

/// The kind of request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sends {
    /// A call of `echo` with so many bytes of text; zero stands for a short greeting.
    Echo { length: usize },
    /// A call of a tool that adds two numbers.
    Sum { tool: &'static str },
    /// A call with the name that a conversation asks for.
    Hello,
    /// The list of tools.
    List,
    /// The list of tools, which a client may keep.
    KeptList,
    /// A call that asks for a name, and the same call again with the answer.
    Conversation,
}

const ECHO: Workload = Workload {
    name: "echo",
    talk: Talk::Pipes,
    sends: Sends::Echo { length: 0 },
    tools: 0,
    window: 64,
    lengths: [256, 1280],
    counts: Counts::Answers,
};
const LARGE: Workload = Workload {
    name: "large",
    sends: Sends::Echo { length: 1 << 20 },
    window: 1,
    lengths: [4, 20],
    ..ECHO
};
const LIST: Workload = Workload {
    name: "list",
    sends: Sends::List,
    tools: 1000,
    window: 8,
    lengths: [8, 40],
    counts: Counts::Instructions,
    ..ECHO
};
const ONE_TOOL: Workload =
    Workload { name: "one-tool", tools: 1, counts: Counts::Instructions, ..ECHO };
const RAW: Workload = Workload {
    name: "raw-handler",
    talk: Talk::Handlers,
    sends: Sends::Sum { tool: "raw_add" },
    counts: Counts::Instructions,
    ..ECHO
};

const CLIENT: Workload = Workload { name: "client-echo", talk: Talk::ClientOverPipes, ..ECHO };

pub(super) const WORKLOADS: &[Workload] = &[
    ECHO,
    LARGE,
    LIST,
    ONE_TOOL,
    Workload { name: "many-tools", tools: 1000, ..ONE_TOOL },
    RAW,
    Workload { name: "typed-handler", sends: Sends::Sum { tool: "add" }, ..RAW },
    Workload { name: "plain-call", sends: Sends::Hello, ..RAW },
    Workload { name: "conversation", sends: Sends::Conversation, ..RAW },
    CLIENT,
    Workload { name: "client-cached", sends: Sends::KeptList, window: 1, ..CLIENT },
    Workload { name: "http-echo", talk: Talk::Http, window: 32, ..ECHO },
    Workload { name: "http-large", talk: Talk::Http, ..LARGE },
    Workload { name: "http-list", talk: Talk::Http, ..LIST },
    Workload {
        name: "http-closed",
        talk: Talk::Http,
        window: 64,
        lengths: [64, 320],
        counts: Counts::Remains,
        ..ECHO
    },
    Workload { name: "http-client-echo", talk: Talk::ClientOverHttp, window: 32, ..CLIENT },
];

/// Workloads whose instructions are compared with those of another.
pub(super) const COMPARISONS: &[(&str, &str)] =
    &[("typed-handler", "raw-handler"), ("many-tools", "one-tool"), ("conversation", "plain-call")];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Workload {
        WORKLOADS.iter().find(|workload| workload.name == name).unwrap()
    }

    #[test]
    fn compared_workloads_are_counted_in_the_same_way() {
        for (name, reference) in COMPARISONS {
            let (one, other) = (named(name), named(reference));
            assert_eq!(one.talk, other.talk);
            assert_eq!((one.window, one.lengths), (other.window, other.lengths));
        }
    }

    #[test]
    fn runs_fill_their_windows() {
        for workload in WORKLOADS {
            let [short, long] = workload.lengths;
            assert!(short < long, "{}", workload.name);
            assert!(short % workload.window == 0 && long % workload.window == 0);
        }
    }
}
