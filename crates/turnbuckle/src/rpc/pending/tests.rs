//! What the table promises, and a search for an interleaving that breaks it.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

type Plain = PendingTable<&'static str, &'static str>;

#[test]
fn a04_an_id_in_flight_is_refused_by_name_and_free_again_afterwards() {
    let mut table = Plain::default();
    let (id, serial) = table.send(Some("7".into()), "first").unwrap();
    assert_eq!(table.send(Some("7".into()), "second"), Err(Collision("7".into())));
    assert_eq!(table.abandon(&id, serial), Some("first"));
    assert!(table.send(Some("7".into()), "third").is_ok());
}

#[test]
fn a05_a_decimal_string_and_its_integer_are_one_key() {
    let mut table = Plain::default();
    table.send(Some("7".into()), "a").unwrap();
    assert!(table.send(Some(7.into()), "b").is_err());
    assert!(table.send(Some("07".into()), "c").is_ok(), "only the canonical form folds");
    assert_eq!(table.answer(&7.into()), Some("a"));
    table.send(Some(7.into()), "d").unwrap();
    assert_eq!(table.answer(&"7".into()), Some("d"));
}

#[test]
fn a06_minting_steps_over_chosen_ids() {
    let mut table = Plain::default();
    table.send(Some("1".into()), "chosen").unwrap();
    table.send(Some(2.into()), "chosen").unwrap();
    assert_eq!(table.send(None, "minted").unwrap().0, RequestId::from(3));
    table.answer(&1.into());
    assert_eq!(table.send(None, "minted").unwrap().0, RequestId::from(4), "ids are not reused");
}

#[test]
fn a08_an_answer_to_nothing_changes_nothing() {
    let mut table = Plain::default();
    let (id, _) = table.send(None, "a").unwrap();
    assert_eq!(table.answer(&99.into()), None);
    assert_eq!(table.answer(&id), Some("a"));
    assert_eq!(table.answer(&id), None, "late");
}

#[test]
fn a11_the_same_id_twice_in_flight_disturbs_only_the_second() {
    let mut table = Plain::default();
    let first = table.accept(&1.into(), "first").unwrap();
    assert_eq!(table.accept(&"1".into(), "second"), Err(Collision("1".into())));
    assert_eq!(table.finish(&1.into(), first), Some("first"));
    assert!(table.accept(&1.into(), "again").is_ok());
}

#[test]
fn a27_an_old_use_of_an_id_can_not_end_a_new_one() {
    let mut table = Plain::default();
    let old = table.accept(&1.into(), "old").unwrap();
    table.cancel(&1.into()).unwrap();
    let new = table.accept(&1.into(), "new").unwrap();
    assert_eq!(table.finish(&1.into(), old), None, "the old handler is still unwinding");
    assert_eq!(table.finish(&1.into(), new), Some("new"));

    let (id, old) = table.send(Some(5.into()), "old").unwrap();
    table.answer(&id).unwrap();
    table.send(Some(5.into()), "new").unwrap();
    assert_eq!(table.abandon(&id, old), None);
    assert_eq!(table.answer(&id), Some("new"));
}

/// One step of a peer or of this side. Ids are few, so that they collide often.
#[derive(Clone, Debug)]
enum Step {
    Send(Option<u8>),
    Answer(u8),
    Abandon(usize),
    Accept(u8),
    Finish(usize),
    Cancel(u8),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => proptest::option::of(0u8..6).prop_map(Step::Send),
        3 => (0u8..9).prop_map(Step::Answer),
        3 => (0usize..40).prop_map(Step::Abandon),
        4 => (0u8..6).prop_map(Step::Accept),
        3 => (0usize..40).prop_map(Step::Finish),
        3 => (0u8..6).prop_map(Step::Cancel),
        1 => Just(Step::Close),
    ]
}

/// Half of the ids are spelled as strings.
fn spell(id: u8) -> RequestId {
    if id.is_multiple_of(2) {
        RequestId::from(u32::from(id))
    } else {
        RequestId::from(id.to_string())
    }
}

proptest! {
    #[test]
    fn whatever_the_interleaving_every_accepted_request_ends_exactly_once(
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        let mut table: PendingTable<usize, usize> = PendingTable::default();
        // Ticket -> how often it ended.
        let mut ended: HashMap<usize, u32> = HashMap::new();
        let (mut sent, mut accepted) = (Vec::new(), Vec::new());
        let mut ticket = 0;
        for step in steps {
            let finished: Vec<usize> = match step {
                Step::Send(id) => {
                    ticket += 1;
                    if let Ok((id, serial)) = table.send(id.map(spell), ticket) {
                        ended.insert(ticket, 0);
                        sent.push((id, serial));
                    }
                    vec![]
                }
                Step::Accept(id) => {
                    ticket += 1;
                    if let Ok(serial) = table.accept(&spell(id), ticket) {
                        ended.insert(ticket, 0);
                        accepted.push((spell(id), serial));
                    }
                    vec![]
                }
                Step::Answer(id) => table.answer(&spell(id)).into_iter().collect(),
                Step::Cancel(id) => table.cancel(&spell(id)).map(|(_, ticket)| ticket).into_iter().collect(),
                Step::Abandon(index) => sent.get(index)
                    .and_then(|(id, serial)| table.abandon(id, *serial)).into_iter().collect(),
                Step::Finish(index) => accepted.get(index)
                    .and_then(|(id, serial)| table.finish(id, *serial)).into_iter().collect(),
                Step::Close => {
                    let (sent, running) = table.close();
                    sent.into_iter().chain(running.into_iter().map(|(_, ticket)| ticket)).collect()
                }
            };
            for ticket in finished {
                let count = ended.get_mut(&ticket).expect("only what was accepted can end");
                *count += 1;
                prop_assert_eq!(*count, 1, "ticket {} ended twice", ticket);
            }
        }
        let (left, running) = table.close();
        for ticket in left.into_iter().chain(running.into_iter().map(|(_, ticket)| ticket)) {
            *ended.get_mut(&ticket).unwrap() += 1;
        }
        for (ticket, count) in ended {
            prop_assert_eq!(count, 1, "ticket {} must end once", ticket);
        }
        prop_assert_eq!((table.sent_len(), table.running_len()), (0, 0));
    }
}
