//! What waits for whom, without any stream.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Wake,
};

use super::*;

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A listener and the bell of whoever polls it.
struct Ear {
    listener: ListenerHandle,
    bell: Arc<Bell>,
}

impl Ear {
    fn is_ready(&self) -> bool {
        let waker = Waker::from(self.bell.clone());
        self.listener.poll_ready(&mut Context::from_waker(&waker)).is_ready()
    }

    fn rung(&self) -> usize {
        self.bell.0.load(Relaxed)
    }

    fn taken(&self) -> Vec<Change> {
        std::iter::from_fn(|| self.listener.take().unwrap()).collect()
    }
}

fn ear(listeners: &Listeners, topics: impl IntoIterator<Item = Change>) -> Ear {
    let listener = listeners.stream(topics.into_iter().collect(), usize::MAX).unwrap();
    Ear { listener, bell: Arc::default() }
}

fn note(number: usize) -> Change {
    Change::Resource(format!("note://{number}"))
}

#[test]
fn a_change_that_waits_is_told_once_and_one_after_that_again() {
    let listeners = Listeners::default();
    let every = [Change::Tools, Change::Prompts, Change::Resources, note(1)];
    let ear = ear(&listeners, every.clone());
    assert!(!ear.is_ready());
    for _ in 0..3 {
        every.iter().for_each(|change| listeners.deliver(change.clone()));
    }
    assert!(ear.is_ready());
    assert_eq!(ear.taken(), every);
    assert!(!ear.is_ready());
    listeners.deliver(Change::Prompts);
    assert_eq!(ear.taken(), [Change::Prompts]);
}

#[test]
fn changes_are_told_in_the_order_in_which_they_first_came() {
    let listeners = Listeners::default();
    let ear = ear(&listeners, (0..10).map(note).chain([Change::Tools]));
    for change in [note(7), note(2), Change::Tools, note(7), note(9), note(2)] {
        listeners.deliver(change);
    }
    assert_eq!(ear.listener.take(), Ok(Some(note(7))));
    // It does not wait any more, so it waits again, behind the others.
    listeners.deliver(note(7));
    assert_eq!(ear.taken(), [note(2), Change::Tools, note(9), note(7)]);
}

#[test]
fn only_those_who_asked_are_woken_and_each_only_once() {
    let listeners = Listeners::default();
    let tools = ear(&listeners, [Change::Tools]);
    let prompts = ear(&listeners, [Change::Prompts]);
    let note_1 = ear(&listeners, [note(1)]);
    let nothing = ear(&listeners, []);
    let all = [&tools, &prompts, &note_1, &nothing];
    assert!(all.iter().all(|ear| !ear.is_ready()));
    for change in [Change::Tools, Change::Tools, note(2), Change::Resources] {
        listeners.deliver(change);
    }
    assert_eq!(all.map(Ear::rung), [1, 0, 0, 0]);
    listeners.deliver(note(1));
    assert_eq!(all.map(Ear::rung), [1, 0, 1, 0]);
    assert_eq!(all.map(Ear::taken), [vec![Change::Tools], vec![], vec![note(1)], vec![]]);
}

#[test]
fn one_that_falls_behind_is_told_so_and_keeps_nothing() {
    let listeners = Listeners::default();
    let slow = ear(&listeners, (0..=BACKLOG).map(note));
    let quick = ear(&listeners, (0..=BACKLOG).map(note));
    for number in 0..BACKLOG {
        listeners.deliver(note(number));
        listeners.deliver(note(number));
        assert_eq!(quick.taken(), [note(number)]);
    }
    assert_eq!(slow.listener.take(), Ok(Some(note(0))), "so many may wait");
    listeners.deliver(note(0));
    listeners.deliver(note(BACKLOG));
    assert!(slow.is_ready());
    assert_eq!(slow.listener.take(), Err(Behind));
    assert_eq!(slow.listener.mailbox.lock().queue.capacity(), 0);
    listeners.deliver(note(1));
    assert_eq!(slow.listener.take(), Err(Behind), "what is lost stays lost");
    assert_eq!(quick.taken(), [note(0), note(BACKLOG), note(1)]);
}

#[test]
fn falling_behind_wakes() {
    let listeners = Listeners::default();
    let ear = ear(&listeners, (0..=BACKLOG).map(note));
    (0..BACKLOG).for_each(|number| listeners.deliver(note(number)));
    let waker = Waker::from(ear.bell.clone());
    ear.listener.mailbox.lock().waker = Some(waker);
    listeners.deliver(note(BACKLOG));
    assert_eq!(ear.rung(), 1);
}

#[test]
fn dropping_one_leaves_nothing_behind() {
    let listeners = Listeners::default();
    let shared = || [Change::Tools, note(1)];
    let mut ears: Vec<Ear> = (0..5).map(|_| ear(&listeners, shared())).collect();
    let connection = listeners.connection(shared().into());
    assert_eq!(listeners.count(), 5, "a connection is no stream");
    let mailbox = Arc::downgrade(&ears[2].listener.mailbox);
    drop(ears.remove(2));
    assert!(mailbox.upgrade().is_none());
    listeners.deliver(note(1));
    assert!(ears.iter().all(|ear| ear.taken() == [note(1)]));
    assert_eq!(connection.take(), Ok(Some(note(1))));
    drop((ears, connection));
    assert_eq!(listeners.count(), 0);
    assert!(listeners.0.lock().topics.is_empty());
}

#[test]
fn no_more_than_the_limit_may_listen() {
    let listeners = Listeners::default();
    let one = listeners.stream(vec![Change::Tools], 2).unwrap();
    let _two = listeners.stream(vec![], 2).unwrap();
    assert!(listeners.stream(vec![Change::Tools], 2).is_none());
    assert_eq!(listeners.count(), 2);
    drop(one);
    assert!(listeners.stream(vec![Change::Tools], 2).is_some());
}

#[test]
fn what_one_listens_to_may_change() {
    let listeners = Listeners::default();
    let [older, younger] = [(); 2].map(|()| listeners.connection(vec![Change::Tools]));
    let taken = |listener: &ListenerHandle| -> Vec<Change> {
        std::iter::from_fn(|| listener.take().unwrap()).collect()
    };
    assert!(younger.add(&note(1), 3) && older.add(&note(1), 3) && older.add(&note(2), 3));
    assert!(older.add(&note(2), 3), "again changes nothing");
    assert!(!older.add(&note(3), 3), "no more than there may be");
    for change in [note(2), note(3), note(1), Change::Tools] {
        listeners.deliver(change);
    }
    assert_eq!(taken(&older), [note(2), note(1), Change::Tools]);
    assert_eq!(taken(&younger), [note(1), Change::Tools]);

    listeners.deliver(note(1));
    listeners.deliver(note(2));
    older.remove(&note(1));
    older.remove(&note(1));
    older.remove(&note(9));
    assert_eq!(taken(&older), [note(2)], "what waited is not told");
    assert_eq!(taken(&younger), [note(1)]);
    assert!(older.add(&note(3), 3), "there is room again");
    listeners.deliver(note(1));
    listeners.deliver(note(3));
    assert_eq!(taken(&older), [note(3)], "and its place is its own");
    assert_eq!(older.topics(), [Change::Tools, note(3), note(2)]);
    drop((older, younger));
    assert!(listeners.0.lock().topics.is_empty());
}

/// A waker that does what foreign code may do: take a listener away, and deliver.
#[test]
fn whoever_is_woken_may_leave_and_deliver() {
    struct Leaves(Mutex<Option<ListenerHandle>>, Listeners);
    impl Wake for Leaves {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
            self.1.deliver(Change::Tools);
        }
    }
    let listeners = Listeners::default();
    let listener = listeners.stream(vec![Change::Tools], 1).unwrap();
    let leaves = Arc::new(Leaves(Mutex::new(None), listeners.clone()));
    let waker = Waker::from(leaves.clone());
    assert!(listener.poll_ready(&mut Context::from_waker(&waker)).is_pending());
    *leaves.0.lock().unwrap() = Some(listener);
    listeners.deliver(Change::Tools);
    assert_eq!(listeners.count(), 0);
}
