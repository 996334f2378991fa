//! The asking: what a server wants to know is asked in the terminal, one question at a time.

mod field;
mod interview;
mod lines;
mod sampling;

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
};

use tokio::sync::Mutex;
use turnbuckle::{
    RpcError,
    types::{
        ClientCapabilities, CreateMessage, CreateMessageResult, Elicit, ElicitResult, Raw,
        SamplingCapability,
    },
};

use crate::{
    output::printable,
    progress::{Held, Line},
};
use interview::Interview;
use lines::Lines;

/// Whether somebody is there who can read a question and answer it.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What is declared beyond what answering implies: a question for a model may offer it tools.
pub(crate) fn declared() -> ClientCapabilities {
    let mut sampling = SamplingCapability::new();
    sampling.tools = Some(Raw::empty_object());
    let mut declared = ClientCapabilities::new();
    declared.sampling = Some(sampling);
    declared
}

/// Where questions are asked.
#[derive(Clone)]
pub(crate) struct Desk {
    /// Who asks.
    server: Arc<str>,
    line: Line,
    lines: Arc<Mutex<Lines>>,
    show: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Desk {
    /// Questions of `server`, on this process's terminal. The progress gives way to them.
    pub(crate) fn new(server: &str, line: &Line) -> Desk {
        let show = |text: &str| {
            let mut stderr = std::io::stderr().lock();
            // A terminal that is gone ends the input too, which declines.
            let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        };
        Desk::with(server, line, Lines::new(lines::from_stdin), show)
    }

    fn with(
        server: &str,
        line: &Line,
        lines: Lines,
        show: impl Fn(&str) + Send + Sync + 'static,
    ) -> Desk {
        let lines = Arc::new(Mutex::new(lines));
        Desk { server: server.into(), line: line.clone(), lines, show: Arc::new(show) }
    }

    /// Asks the person a form's questions, or whether a page was visited.
    pub(crate) async fn answer(self, question: Elicit) -> Result<ElicitResult, RpcError> {
        let (mut interview, opening) = Interview::new(&self.server, question);
        Ok(self.ask(&opening, |typed| interview.hear(typed)).await)
    }

    /// Has the person say what a model was asked for.
    pub(crate) async fn stand_in(
        self,
        question: CreateMessage,
    ) -> Result<CreateMessageResult, RpcError> {
        sampling::is_possible(&question)?;
        let opening = sampling::opening(&self.server, &question);
        self.ask(&opening, sampling::hear).await
    }

    /// Asks, when those before have been answered. Dropping the future takes the question back.
    async fn ask<A>(&self, opening: &str, mut hear: impl FnMut(Option<&str>) -> Step<A>) -> A {
        let mut lines = self.lines.lock().await;
        lines.forget();
        let held = self.line.hold();
        let mut asked = Asked { show: &*self.show, held: &held, is_open: true };
        (self.show)(opening);
        loop {
            let typed = lines.next().await;
            // The key that ends the input ends no line.
            asked.is_open = typed.is_none();
            match hear(typed.as_deref()) {
                Step::Ask(text) => (self.show)(&text),
                Step::Done(answer) => return answer,
            }
            asked.is_open = true;
        }
    }
}

/// What comes after a line that was typed.
#[derive(Debug, PartialEq)]
enum Step<A> {
    /// This is shown, and another line is needed.
    Ask(String),
    Done(A),
}

/// What a server says can't pass for what this program says.
fn indented(text: &str) -> String {
    printable(text).lines().map(|line| format!("  {line}\n")).collect()
}

/// A question on the terminal. What comes after it begins on a line of its own.
struct Asked<'a> {
    show: &'a (dyn Fn(&str) + Send + Sync),
    held: &'a Held,
    is_open: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_open && self.held.is_last() {
            (self.show)("\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use turnbuckle::types::{ElicitAction, ElicitForm, ElicitSchema, StringSchema};

    use super::*;

    fn question(message: &str) -> Elicit {
        ElicitForm::new(message, ElicitSchema::new([("name", StringSchema::new())])).into()
    }

    /// A desk, the one who types and the one who reads.
    fn desk() -> (Desk, SyncSender<Option<String>>, Receiver<String>) {
        let (typing, typed) = sync_channel::<Option<String>>(8);
        let (shown, reading) = sync_channel(64);
        let lines = Lines::new(move || typed.recv().unwrap_or(None));
        let show = move |text: &str| shown.send(text.to_owned()).unwrap();
        (Desk::with("notes", &Line::on_stderr(), lines, show), typing, reading)
    }

    fn name_in(answer: Result<ElicitResult, RpcError>) -> String {
        answer.unwrap().content.unwrap().as_str().to_owned()
    }

    #[tokio::test]
    async fn questions_at_the_same_time_are_asked_one_after_the_other() {
        let (desk, typing, reading) = desk();
        let both = async {
            tokio::join!(desk.clone().answer(question("one")), desk.clone().answer(question("two")))
        };
        let mut both = Box::pin(both);
        assert!(futures_poll(&mut both).await.is_none());
        assert!(reading.try_recv().unwrap().contains("one"));
        assert!(reading.try_recv().is_err(), "the second waits");
        typing.send(Some("a".into())).unwrap();
        typing.send(Some("b".into())).unwrap();
        let (one, two) = both.await;
        assert_eq!((&*name_in(one), &*name_in(two)), (r#"{"name":"a"}"#, r#"{"name":"b"}"#));
        assert!(reading.try_recv().unwrap().contains("two"));
    }

    #[tokio::test]
    async fn what_is_typed_goes_to_the_question_that_is_shown() {
        let (desk, typing, reading) = desk();
        let mut taken_back = Box::pin(desk.clone().answer(question("one")));
        assert!(futures_poll(&mut taken_back).await.is_none());
        drop(taken_back);
        assert!(reading.try_recv().unwrap().contains("one"));
        assert_eq!(reading.try_recv().unwrap(), "\n", "the next begins on a line of its own");
        let mut second = Box::pin(desk.answer(question("two")));
        assert!(futures_poll(&mut second).await.is_none());
        typing.send(Some("b".into())).unwrap();
        assert_eq!(name_in(second.await), r#"{"name":"b"}"#);
    }

    #[tokio::test]
    async fn the_end_of_the_input_declines() {
        let (desk, typing, reading) = desk();
        typing.send(None).unwrap();
        let answer = desk.answer(question("one")).await.unwrap();
        assert_eq!((answer.action, answer.content), (ElicitAction::Decline, None));
        assert_eq!(reading.iter().last().unwrap(), "\n");
    }

    /// Polls once.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
