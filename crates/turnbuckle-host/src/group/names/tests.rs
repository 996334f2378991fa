//! What has to be true of names, whatever servers say.

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

fn origin(server: &str, name: &str) -> Origin {
    Origin { server: server.to_owned(), name: name.to_owned() }
}

fn named(pairs: &[(&str, &str)]) -> Vec<String> {
    let origins: Vec<Origin> = pairs.iter().map(|(server, name)| origin(server, name)).collect();
    let names = Names::of(origins.clone());
    origins.iter().map(|origin| names.name(origin).unwrap().to_owned()).collect()
}

#[test]
fn a_name_is_kept_until_another_has_it() {
    assert_eq!(named(&[("a", "search"), ("b", "read")]), ["search", "read"]);
    let all = named(&[("a", "search"), ("b", "search"), ("b", "read"), ("my server", "search")]);
    assert_eq!(all, ["a_search", "b_search", "read", "my_server_search"]);
}

#[test]
fn who_is_in_the_way_of_a_server_s_name_steps_aside() {
    // Else a server could take what another's tool is called.
    let all = named(&[("a", "search"), ("b", "search"), ("evil", "a_search")]);
    assert_eq!(all, ["a_search", "b_search", "evil_a_search"]);
    let all = named(&[("a", "x"), ("b", "x"), ("c", "a_x"), ("d", "c_a_x")]);
    assert_eq!(all, ["a_x", "b_x", "c_a_x", "d_c_a_x"]);
}

#[test]
fn names_that_would_look_the_same_get_a_hash() {
    let all = named(&[("a", "b_c"), ("a_b", "c"), ("x", "b_c"), ("x", "c")]);
    assert!(all[0].starts_with("a_b_c_") && all[1].starts_with("a_b_c_"), "{all:?}");
    assert_ne!(all[0], all[1]);
    assert_eq!(all[2..], ["x_b_c", "x_c"]);
}

#[test]
fn what_models_do_not_take_is_cut_and_stays_the_same_in_every_version() {
    let long = "l".repeat(65);
    let all = named(&[("a", &long), ("a", "list.all"), ("a", "größe"), ("a", "")]);
    let expected = format!("{}_", "l".repeat(53));
    assert!(all[0].starts_with(&expected) && all[0].len() == LONGEST, "{}", all[0]);
    // Hosts keep names in histories: these texts must not change.
    assert_eq!(all[1], format!("list_all_{}", digits(&[b"list.all"])));
    assert_eq!(digits(&[b"list.all"]).len(), DIGITS);
    assert_eq!(digits(&[b""]), "e484e9d1b9");
    assert!(all[2].starts_with("gr__e_"), "{}", all[2]);
    assert_eq!(named(&[("a", &"l".repeat(64))]), ["l".repeat(64)]);
    let server = "s".repeat(60);
    let both = named(&[(&server, "search"), ("b", "search")]);
    assert!(both[0].contains("_search_") && both[0].len() == LONGEST, "{}", both[0]);
    let tool = "t".repeat(64);
    let both = named(&[(&server, &tool), ("b", &tool)]);
    assert!(both[0].starts_with(&format!("{}_tt", "s".repeat(SERVER))), "{}", both[0]);
    assert_eq!(both[0].len(), LONGEST);
}

#[test]
fn an_older_name_still_leads_there() {
    let names = Names::of([origin("a", "search"), origin("b", "search"), origin("b", "list.all")]);
    assert_eq!(names.find("a_search"), Found::One(&origin("a", "search")));
    assert_eq!(names.find("search"), Found::Several(vec!["a_search", "b_search"]));
    assert_eq!(names.find("list.all"), Found::One(&origin("b", "list.all")));
    let alone = Names::of([origin("a", "search")]);
    assert_eq!(alone.find("a_search"), Found::One(&origin("a", "search")));
    assert_eq!(alone.find("b_search"), Found::None);
}

#[test]
fn what_one_may_have_meant_is_near() {
    let names = Names::of(["search", "read_file", "write_file", "x"].map(|name| origin("a", name)));
    assert_eq!(names.near("serach"), ["search"]);
    assert_eq!(names.near("Search"), ["search"]);
    assert_eq!(names.near("unheard"), Vec::<&str>::new());
    assert_eq!(names.near(&"search".repeat(100)), Vec::<&str>::new());
    assert_eq!(names.near(""), Vec::<&str>::new());
    // Half of it is another's.
    assert_eq!(names.near("file"), Vec::<&str>::new());
    assert_eq!(names.near("read_filez"), ["read_file"]);
}

#[test]
fn what_only_looks_a_little_alike_is_not_near() {
    let near = |known: &str, wanted: &str| {
        Names::of([origin("notes", known)]).near(wanted).first().copied() == Some(known)
    };
    for (known, wanted) in [
        ("wipe", "wpie"),
        ("wipe", "WIPE"),
        ("wipe", "wiped"),
        ("get_time", "get-times"),
        ("search", "serahc"),
        ("search", "Notes_Search"),
        ("search", "mcp__notes__search"),
        ("search", "notes.search"),
    ] {
        assert!(near(known, wanted), "{wanted} for {known}");
    }
    for (known, wanted) in [
        ("wipe", "nope"),
        ("x", "y"),
        ("search", "reach"),
        ("search", "other_search"),
        ("search", "banknotes_search"),
        ("search", "notessearch"),
        ("list_all_of_them", "last_of_the_mohicans"),
    ] {
        assert!(!near(known, wanted), "{wanted} for {known}");
    }
}

/// Few letters and servers, so that much collides; names of servers that others can be made of;
/// what is too long; what no model takes.
fn origins() -> impl Strategy<Value = Vec<Origin>> {
    let server = prop_oneof!["[ab_]{1,3}", "[ab ]{1,3}", "a{40,50}"];
    let name = prop_oneof!["[ab_]{1,4}", "[ab_.é]{0,3}", "b{60,70}", "[ab]_b{60,64}"];
    vec((server, name).prop_map(|(server, name)| Origin { server, name }), 1..24)
}

proptest! {
    #[test]
    fn names_are_unique_fit_and_lead_back(origins in origins()) {
        let names = Names::of(origins.clone());
        for origin in &origins {
            let name = names.name(origin).unwrap();
            prop_assert!(fits(name) && name.len() <= LONGEST, "{name}");
            prop_assert_eq!(names.find(name), Found::One(origin));
        }
    }

    #[test]
    fn the_order_does_not_matter(origins in origins(), at in any::<Index>()) {
        let mut turned = origins.clone();
        turned.rotate_left(at.index(origins.len()));
        turned.reverse();
        let (one, other) = (Names::of(origins), Names::of(turned));
        prop_assert_eq!(one.by_origin, other.by_origin);
    }

    #[test]
    fn whoever_comes_changes_only_what_is_like_it(origins in origins(), other in "z[a-z]{1,8}") {
        let before = Names::of(origins.clone());
        // Nobody else has a `z` in anything.
        let more = origins.iter().cloned().chain([origin("zz", &other)]);
        let after = Names::of(more);
        for origin in &origins {
            prop_assert_eq!(before.name(origin), after.name(origin));
        }
        prop_assert_eq!(after.name(&origin("zz", &other)), Some(other.as_str()));
    }

    #[test]
    fn a_name_that_fits_and_that_nobody_else_has_is_never_changed(origins in origins()) {
        let names = Names::of(origins.clone());
        for one in &origins {
            let alone = fits(&one.name) && one.name.len() <= LONGEST
                && origins.iter().all(|other| other == one
                    || (own(&other.name) != one.name
                        && !one.name.starts_with(&format!("{}_", cut(&clean(&other.server), SERVER)))));
            if alone {
                prop_assert_eq!(names.name(one), Some(one.name.as_str()));
            }
        }
    }
}
