use super::*;

const SOUND: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

fn with(parent: &str, state: &str, baggage: &str) -> TraceContext {
    let mut meta = Meta::new();
    meta.set_traceparent(parent);
    meta.set_tracestate(state);
    meta.set_baggage(baggage);
    TraceContext::from_meta(&meta)
}

#[test]
fn a_sound_parent_is_written_as_it_was_read() {
    let parent: TraceParent = SOUND.parse().unwrap();
    assert_eq!(parent.to_string(), SOUND);
    assert_eq!(parent.trace_id()[..2], [0x0a, 0xf7]);
    assert_eq!(parent.span_id()[6..], [0x02, 0xb7]);
    assert!(parent.is_sampled());
}

#[test]
fn what_is_no_parent_is_refused() {
    let refused = [
        "",
        "00",
        "00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-1",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-0g",
        "00_0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c_00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7_01",
        "01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01more",
        " 00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c8031é-00f067aa0ba902b7-01",
    ];
    for text in refused {
        assert_eq!(text.parse::<TraceParent>(), Err(InvalidTraceParent(())), "{text}");
    }
}

#[test]
fn a_later_version_is_understood_as_far_as_it_goes() {
    let later = "cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-ff-what-the-future-brings";
    assert_eq!(later.parse::<TraceParent>().unwrap().to_string(), SOUND);
}

#[test]
fn state_needs_a_parent_and_must_be_sound() {
    assert_eq!(with(SOUND, "a=1, b@sys=2 ,,", "").state(), Some("a=1, b@sys=2 ,,"));
    assert_eq!(with("junk", "a=1", "").state(), None);
    let full: Vec<String> = (0..32).map(|at| format!("k{at}=v")).collect();
    assert!(with(SOUND, &full.join(","), "").state().is_some());
    let long = format!("a={}", "v".repeat(257));
    let more = format!("{},one=more", full.join(","));
    for state in ["", ",", "a", "A=1", "1=1", "a=1,a=2", "a=x=y", "a=\u{e9}", "a=", &long, &more] {
        let read = with(SOUND, state, "");
        assert_eq!(read.state(), None, "{state}");
        assert!(read.parent().is_some());
    }
}

#[test]
fn baggage_stands_alone_and_must_be_sound() {
    let read = with("junk", "", "a = 1 ;p;q=2 , b=%C3%A9%zz");
    assert!(read.parent().is_none() && !read.is_empty());
    assert_eq!(read.entry("a").as_deref(), Some("1"));
    assert_eq!(read.entry("b").as_deref(), Some("\u{e9}%zz"));
    assert_eq!(read.entry("p"), None);
    let many = vec!["a=1"; 65].join(",");
    let long = format!("a={}", "v".repeat(LONGEST));
    for baggage in ["", "a", "a=1,", "a b=1", "a=\"1\"", "a=1;b c", "=1", &many, &long] {
        assert_eq!(with(SOUND, "", baggage).baggage(), None, "{baggage}");
    }
}

#[test]
fn what_is_no_text_is_left_out() {
    let mut meta = Meta::new();
    for key in [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE] {
        meta.insert(key, serde_json::json!(7));
    }
    assert!(TraceContext::from_meta(&meta).is_empty());
}

#[test]
fn writing_replaces_the_state_of_another_trace() {
    let mut meta = Meta::new();
    meta.set_tracestate("old=1");
    meta.set_progress_token(1);
    TraceContext::new(SOUND.parse().unwrap()).write_to(&mut meta);
    assert_eq!(meta.tracestate().unwrap(), None);
    assert_eq!(meta.traceparent().unwrap().as_deref(), Some(SOUND));
    assert_eq!(meta.len(), 2);

    let elsewhere = TraceParent::new([1; 16], [2; 8], 0).unwrap();
    assert_eq!(with(SOUND, "a=1", "").with_parent(elsewhere).state(), None);
    let here = SOUND.parse::<TraceParent>().unwrap().with_span([9; 8]).unwrap();
    assert_eq!(with(SOUND, "a=1", "").with_parent(here).state(), Some("a=1"));
}

#[cfg(feature = "server")]
#[test]
fn questions_carry_it_on_in_their_own_meta() {
    let trace = with(SOUND, "a=1", "");
    let carried = |params: &str| {
        trace.carried_in(Raw::from_json(params).unwrap()).decode::<serde_json::Value>().unwrap()
    };
    let meta = serde_json::json!({"traceparent": SOUND, "tracestate": "a=1"});
    for params in ["null", "{}", "{ }"] {
        assert_eq!(carried(params), serde_json::json!({ "_meta": meta }), "{params}");
    }
    assert_eq!(carried(r#"{"a":{"b":1}}"#), serde_json::json!({"_meta": meta, "a": {"b": 1}}));
    let own = carried(r#"{"a":1,"_meta": {"x":"_meta"} ,"b":2}"#);
    assert_eq!((&own["a"], &own["b"], &own["_meta"]["x"]), (&1.into(), &2.into(), &"_meta".into()));
    assert_eq!(own["_meta"]["traceparent"], SOUND);
    let spoken = r#"{"_meta":{"traceparent":"mine"}}"#;
    assert_eq!(carried(spoken)["_meta"], serde_json::json!({"traceparent": "mine"}));
    assert_eq!(carried("[1]"), serde_json::json!([1]));
}
