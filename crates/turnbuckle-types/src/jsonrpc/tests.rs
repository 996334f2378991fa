use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Message, Fault> {
    parse(Bytes::copy_from_slice(text.as_bytes()), 64)
}

fn frame(text: &str) -> Frame {
    match read(text) {
        Ok(Message::Single(frame)) => frame,
        other => panic!("{text}: {other:?}"),
    }
}

fn fault_of(text: &str) -> Fault {
    read(text).expect_err(text)
}

#[test]
fn params_are_a_slice_of_the_line_wherever_they_stand() {
    for (text, params) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a": [1, {"b":2}] }}"#,
            r#"{"a": [1, {"b":2}] }"#,
        ),
        (r#"{ "params" : { "a":"}" } ,"jsonrpc":"2.0","id":1,"method":"m"}"#, r#"{ "a":"}" }"#),
        (r#"{"params":{"\u0061":1},"jsonrpc":"2.0","id":1,"method":"m"}"#, r#"{"\u0061":1}"#),
        (r#"{"params":{},"jsonrpc":"2.0","id":1,"method":"m"}"#, "{}"),
        (r#"{"params":{ },"jsonrpc":"2.0","id":1,"method":"m"}"#, "{}"),
    ] {
        let Frame::Request(request) = frame(text) else { panic!() };
        assert_eq!(request.params.text(), params);
        assert_eq!(&*request.method, "m");
    }
    let line = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"m","params":{"a":1}}"#);
    let Ok(Message::Single(Frame::Notification(note))) = parse(line.clone(), 64) else { panic!() };
    let raw = note.params.raw.unwrap().into_bytes();
    assert!(line.as_ptr_range().contains(&raw.as_ptr()), "no copy");
}

#[test]
fn the_members_that_routing_needs_are_found_in_the_same_pass() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"k":1},"other":[],"name":"add","arguments":{"a":1},"inputResponses":{},"requestState":"s"}}"#;
    let Frame::Request(request) = frame(text) else { panic!() };
    let retry = request.params.retry.unwrap();
    assert_eq!(retry.input_responses.unwrap().as_str(), "{}");
    assert_eq!(retry.request_state.unwrap().as_str(), r#""s""#);
    assert_eq!(request.params.meta.unwrap().as_str(), r#"{"k":1}"#);
    assert_eq!(request.params.name.unwrap().as_str(), r#""add""#);
    assert_eq!(request.params.arguments.unwrap().as_str(), r#"{"a":1}"#);
    for member in ["requestId", "progressToken"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"{member}":"7"}}}}"#);
        let Frame::Notification(note) = frame(&text) else { panic!() };
        assert_eq!(note.params.subject.unwrap().as_str(), "\"7\"");
    }
}

#[test]
fn every_kind_of_bad_envelope_is_refused_with_its_id() {
    for text in [
        r#"{"jsonrpc":"1.0","id":3,"method":"m"}"#,
        r#"{"id":3,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":[1,2],"id":3}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":"x","id":3}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":7,"id":3}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"m","id":3}"#,
        r#"{"jsonrpc":"2.0","method":"m","method":"n","id":3}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":{},"params":{},"id":3}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":{"name":"a","name":"b"},"id":3}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":{"_meta":{},"_meta":{}},"id":3}"#,
        r#"{"jsonrpc":"2.0","method":5,"id":3}"#,
        &format!(r#"{{"jsonrpc":"2.0","method":"{}","id":3}}"#, "m".repeat(1023)),
        r#"{"jsonrpc":"2.0","method":"m","result":{},"id":3}"#,
        r#"{"jsonrpc":"2.0","id":3}"#,
    ] {
        let fault = fault_of(text);
        assert_eq!(fault.id, Some(3.into()), "{text}");
        assert_eq!(fault.role, FrameRole::Request, "{text}");
        assert_eq!(fault.error.code, crate::code::INVALID_REQUEST, "{text}");
    }
}

#[test]
fn a_request_id_is_a_string_or_an_integer() {
    for token in ["null", "true", "1.5", "[1]", "{}", "-0"] {
        let fault = fault_of(&format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"m"}}"#));
        assert_eq!((fault.id, fault.error.code), (None, crate::code::INVALID_REQUEST), "{token}");
    }
    for token in ["0", "-9223372036854775808", "18446744073709551615", "\"\"", "\"7\""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"m"}}"#);
        let Frame::Request(request) = frame(&text) else { panic!() };
        assert_eq!(request.id.to_string(), token);
    }
}

#[test]
fn a_broken_answer_names_whom_it_was_for() {
    for text in [
        r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":3,"result":{}}"#,
    ] {
        let fault = fault_of(text);
        assert_eq!((fault.role, fault.id), (FrameRole::Response, Some(3.into())), "{text}");
    }
}

#[test]
fn an_error_without_an_id_is_a_response() {
    for id in ["", r#""id":null,"#] {
        let text = format!(
            r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"m","data":[1]}}}}"#
        );
        let Frame::Response(response) = frame(&text) else { panic!() };
        assert_eq!(response.id, None);
        let error = response.outcome.unwrap_err();
        assert_eq!((error.code, &*error.message), (-32700, "m"));
        assert_eq!(error.data.unwrap().as_str(), "[1]");
    }
}

#[test]
fn what_is_not_json_is_a_parse_error() {
    for text in
        ["", "{", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, "{\"a\":\"\n\"}"]
    {
        assert_eq!(fault_of(text).error.code, crate::code::PARSE_ERROR, "{text}");
    }
    let invalid = parse(Bytes::from_static(b"{\"a\":\"\xff\"}"), 64).unwrap_err();
    assert_eq!(invalid.error.code, crate::code::PARSE_ERROR);
    for text in ["5", "\"x\"", "null", "true"] {
        assert_eq!(fault_of(text).error.code, crate::code::INVALID_REQUEST, "{text}");
    }
}

#[test]
fn a_batch_judges_each_element_on_its_own() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2},{"jsonrpc":"2.0","method":"b"}]"#;
    let Ok(Message::Batch(items)) = read(text) else { panic!() };
    assert!(matches!(items[0], Ok(Frame::Request(_))));
    assert_eq!(items[1].as_ref().unwrap_err().id, Some(2.into()));
    assert!(matches!(items[2], Ok(Frame::Notification(_))));
    assert_eq!(fault_of("[]").error.code, crate::code::INVALID_REQUEST);
}

#[test]
fn a_body_spread_over_lines_becomes_one_line() {
    let text =
        "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\"m\",\n\"params\":{\n\"a\":\"\\n\"}}";
    let Frame::Request(request) = frame(text) else { panic!() };
    assert_eq!(request.params.text(), "{ \"a\":\"\\n\"}");
}

#[test]
fn depth_is_counted_outside_strings_only() {
    let deep = |levels: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(read(&deep(62)).is_ok());
    let fault = fault_of(&deep(63));
    assert!(fault.error.message.contains("64 levels"), "{}", fault.error.message);
    assert_eq!(fault.id, Some(1.into()));
    let abyss = fault_of(&deep(200_000));
    assert_eq!((abyss.id, abyss.role), (Some(1.into()), FrameRole::Request));
    let brackets = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{}\"["}}}}"#,
        "[".repeat(500)
    );
    assert!(read(&brackets).is_ok());
}

#[test]
fn a_written_frame_is_one_line_and_reads_back() {
    let mut out = Vec::new();
    let params = Raw::from_json("{\n \"a\": 1\r\n}").unwrap();
    write_request(&mut out, &"a\"b".into(), "m\n", params.as_str());
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
    let Ok(Message::Single(Frame::Request(request))) = parse(out.into(), 64) else { panic!() };
    assert_eq!((request.id, &*request.method), ("a\"b".into(), "m\n"));

    let mut out = Vec::new();
    write_error(&mut out, None, &RpcError::new(5, "é\"").with_data(&[1]));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"jsonrpc":"2.0","error":{"code":5,"message":"é\"","data":[1]}}"#
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(bytes.into(), 8);
    }

    #[test]
    fn almost_messages_are_read_without_a_panic(
        text in r#"[{}\[\]",:0-9a-z\\ ]{0,40}"#,
        id in prop_oneof![Just("1"), Just("\"a\""), Just("null"), Just("1.5")],
    ) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{text}}}"#);
        if let Err(Fault { id: Some(found), .. }) = read(&line) {
            prop_assert_eq!(found.to_string(), id);
        }
    }
}
