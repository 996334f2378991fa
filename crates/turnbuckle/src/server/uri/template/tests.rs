use proptest::prelude::*;

use super::*;
use crate::server::uri::TextValue;

fn template(text: &str) -> UriTemplate {
    UriTemplate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The values, each as `name=value`, lists with `|`; `None` for no match.
fn found(text: &str, uri: &str) -> Option<String> {
    let shown = |(name, value): (&str, &TextValue)| match value {
        TextValue::One(text) => format!("{name}={text}"),
        TextValue::Many(texts) => format!("{name}=[{}]", texts.join("|")),
    };
    Some(template(text).matches(uri)?.iter().map(shown).collect::<Vec<_>>().join(" "))
}

#[test]
fn what_matches() {
    for (text, uri, expected) in [
        ("a://b", "a://b", ""),
        ("test://template/{id}/data", "test://template/123/data", "id=123"),
        ("n://{id}", "n://a%2Fb", "id=a/b"),
        ("n://{id}", "n://a%252Fb", "id=a%2Fb"),
        ("n://{id}", "n://x@y.org:1", "id=x@y.org:1"),
        ("n://{id}", "n://é", "id=é"),
        ("n://{id}", "n://%C3%A9", "id=é"),
        ("n://{id}", "n://1,2", "id=1,2"),
        ("n://{id}.txt", "n://a.txt.txt", "id=a.txt"),
        ("n://{id}.txt/{x}", "n://a.b.txt/c", "id=a.b x=c"),
        ("n://{host}:{port}", "n://a.b:80", "host=a.b port=80"),
        ("n://{id:3}", "n://éäü", "id=éäü"),
        ("n://{x,y}", "n://1,2", "x=1 y=2"),
        ("n://{x,y}", "n://1", "x=1"),
        ("n://{x*}", "n://1,2%2C3", "x=[1|2,3]"),
        ("n://{x,y*}", "n://1,2,3", "x=1 y=[2|3]"),
        ("f:///{+path}", "f:///a/b%20c?d#e", "path=a/b c?d#e"),
        ("f:///{+path}/raw", "f:///a/raw/raw", "path=a/raw"),
        ("f:///{+path}/{name}.md", "f:///a/b/c.d.md", "name=c.d path=a/b"),
        ("f://{host}/{+path}{?v}{#f}", "f://h/a/b?v=1#x", "f=x host=h path=a/b v=1"),
        ("f://x{/a,b}", "f://x", ""),
        ("f://x{/a,b}", "f://x/1", "a=1"),
        ("f://x{/a,b}", "f://x/1/2", "a=1 b=2"),
        ("f://x{/a*}", "f://x/1//2", "a=[1||2]"),
        ("f://{x}{/a}", "f://1/2", "a=2 x=1"),
        ("f://{x}.txt{/a}", "f://1.txt", "x=1"),
        ("f://x{.a,b}", "f://x.1.2", "a=1 b=2"),
        ("f://x{.a*}", "f://x.1.2.3", "a=[1|2|3]"),
        ("f://x{;p,q}", "f://x;q=1;p", "p= q=1"),
        ("f://x{;p*}/y", "f://x;p=1;p=2/y", "p=[1|2]"),
        ("f://{x}{;p}/y", "f://1;p=2/y", "p=2 x=1"),
        ("s://x{?q,r}", "s://x", ""),
        ("s://x{?q,r}", "s://x?", ""),
        ("s://x{?q,r}", "s://x?r=a/b?c&q=1%262", "q=1&2 r=a/b?c"),
        ("s://x{?q,r}", "s://x?other=1&&q", "q="),
        ("s://x{?q*}", "s://x?q=1&q=2", "q=[1|2]"),
        ("s://x{?q}{&r}", "s://x?r=1", "r=1"),
        ("s://x?a=b{&q}", "s://x?a=b&q=1", "q=1"),
        ("s://x?a={a}&b={b}{&q}", "s://x?a=1&b=2&q=3", "a=1 b=2 q=3"),
        ("s://x?a={a}&b={b}{&q}", "s://x?a=1&b=2", "a=1 b=2"),
        ("s://x?a={a}", "s://x?a=1", "a=1"),
        ("s://x{?q}#top", "s://x?q=1#top", "q=1"),
        ("s://x{#f}", "s://x", ""),
        ("s://x{#f}", "s://x#", "f="),
        ("s://x{#f}", "s://x#a/b#c", "f=a/b#c"),
        ("s://~é/%2F", "s://%7E%c3%A9/%2f", ""),
        ("{scheme}://{x}", "a://b", "scheme=a x=b"),
        ("s://x{?a%20b}", "s://x?a%20b=1", "a%20b=1"),
        // A value takes as much as it can, the first one first.
        ("n://{name}.{ext}", "n://a.tar.gz", "ext=gz name=a.tar"),
        ("n://{a}-{b}", "n://1-2-3", "a=1-2 b=3"),
        ("n://{a}x{b}x", "n://xxxxx", "a=xx b=x"),
        ("n://{name}{.ext}", "n://a.gz", "ext=gz name=a"),
        ("n://{name}{.ext}", "n://a", "name=a"),
        ("n://{name}{.ext*}", "n://a.tar.gz", "ext=[tar|gz] name=a"),
        ("n://{a}:{b}", "n://1:2:3", "a=1 b=2:3"),
        ("n://{a}%2F{b}", "n://1%2f2%2F3", "a=1/2 b=3"),
        ("n://{+a}/{+b}", "n://1/2/3", "a=1/2 b=3"),
        ("n://{+a}/{b}:{c}", "n://1/2/3:4", "a=1/2 b=3 c=4"),
        ("n://{+a}{;p}", "n://1/2;p=3", "a=1/2 p=3"),
        ("n://{+a,b}", "n://1/2,3/4", "a=1/2 b=3/4"),
        ("n://{+a*}", "n://1/2,3/4", "a=[1/2|3/4]"),
        ("n://{+a}?b=c{&q}", "n://1/2?b=c&q=3", "a=1/2 q=3"),
        ("n://{#a,b}", "n://#1,2,3", "a=1 b=2,3"),
        ("n://x{/a}/b", "n://x/b", ""),
        ("n://x{/a}/b", "n://x/1/b", "a=1"),
        ("n://x{/a}{/b}", "n://x/1", "a=1"),
        ("n://x{/a}{/b}", "n://x/1/2", "a=1 b=2"),
        ("n://{a*},b", "n://1,2,b", "a=[1|2]"),
        ("n://x{?q}/b", "n://x?q=1/b", "q=1"),
        ("n://x{?q}/b", "n://x/b", ""),
    ] {
        assert_eq!(found(text, uri).as_deref(), Some(expected), "{text} with {uri}");
    }
}

#[test]
fn what_does_not_match() {
    for (text, uri) in [
        ("a://b", "a://bc"),
        ("a://b", "A://b"),
        ("n://{id}", "n://"),
        ("n://{id}", "n://a/b"),
        ("n://{id}", "n://a?b"),
        ("n://{id}", "n://a#b"),
        ("n://{id}", "n://%"),
        ("n://{id}", "n://%4"),
        ("n://{id}", "n://%GG"),
        ("n://{id}", "n://%+1"),
        ("n://{id}", "n://%FF"),
        ("n://{id}", "n://a\nb"),
        ("n://{id:3}", "n://abcd"),
        ("n://{x,y}", "n://1,2,3"),
        ("n://{id}.txt", "n://.txt"),
        ("f:///{+path}", "f:///"),
        ("f:///{+path}/raw", "f:////raw/"),
        ("f:///{+path}/raw", "f:////raW"),
        ("f:///{+path}/raw", "f:///raw"),
        ("f://x{/a,b}", "f://x/1/2/3"),
        ("f://x{;p}", "f://x;p=1;p=2"),
        ("f://x{;p}", "f://x;z=1"),
        ("s://x{?q}", "s://x?q=1&q=2"),
        ("s://x{?q}", "s://x?q=%FF"),
        ("s://x{?q}", "s://x?z=%FF"),
        ("s://x{?q}", "s://x?q=1#f"),
        ("s://x{?q}#top", "s://x?q=1"),
        ("s://x?a=b{&q}", "s://x?q=1&a=b"),
        ("s://x?a={a}", "s://x?a=1&b=2"),
        ("s://a/b", "s://a%2Fb"),
        ("n://{name}.{ext}", "n://a"),
        ("n://{name}.{ext}", "n://.a"),
        ("n://{name}{.ext}", "n://a.tar.gz"),
        ("n://x{/a}{/b}", "n://x/1/2/3"),
        ("n://{a}-{b}", "n://1/2-3"),
    ] {
        assert_eq!(found(text, uri), None, "{text} with {uri}");
    }
}

#[test]
fn what_is_refused() {
    for (text, sentence) in [
        ("n://{a}{b}", "nothing separates `{a}` from the variable after it"),
        ("n://{a}{+b}", "nothing separates `{a}`"),
        ("n://{+a}{b}", "nothing separates `{+a}`"),
        ("n://{a}{/b}{c}", "nothing separates `{/b}`"),
        ("n://x{?q}{r}", "nothing separates `{?q}`"),
        ("n://{a*,b}", "write it last"),
        ("n://{/a*,b}", "write it last"),
        ("n://{a}/{a}", "`a` is there twice"),
        ("n://{a", "has no `}`"),
        ("n://a}", "`}` has no `{`"),
        ("n://{}", "a name is missing"),
        ("n://{a,}", "a name is missing"),
        ("n://{a b}", "a name has letters"),
        ("n://{a..b}", "a name has letters"),
        ("n://{=a}", "no operator is written `=`"),
        ("n://{a:0}", "from 1 to 9999"),
        ("n://{a:10000}", "from 1 to 9999"),
        ("n://a b", "write `%20`"),
        ("n://%zz", "write `%25`"),
    ] {
        let error = UriTemplate::parse(text).expect_err(text).to_string();
        assert!(error.contains(sentence), "{text}: {error}");
    }
}

#[test]
fn sizes_are_bounded() {
    let long = |length: usize| "a".repeat(length);
    assert!(UriTemplate::parse(&long(2048)).is_ok());
    assert!(UriTemplate::parse(&long(2049)).is_err());
    let many = |count: usize| (0..count).map(|n| format!("/{{v{n}}}")).collect::<String>();
    assert!(UriTemplate::parse(&many(32)).is_ok());
    assert!(UriTemplate::parse(&many(33)).is_err());
    let any = template("{+any}");
    assert!(any.matches(&long(8192)).is_some());
    assert!(any.matches(&long(8193)).is_none());
}

#[test]
fn templates_of_one_shape_match_the_same_uris() {
    for (left, right, expected) in [
        ("n://{id}", "n://{name}", true),
        ("n://{id}", "n://{id:3}", true),
        ("n://{x,y}", "n://{a,b}", true),
        ("n://a{?q}", "n://a{?r,s}", true),
        ("n://a{?q}{&r}", "n://a{?q}", true),
        ("é://%7e{x}", "%C3%A9://~{x}", true),
        ("a://{x}", "b://{x}", false),
        ("n://{id}", "n://all", false),
        ("n://{id}", "n://{+id}", false),
        ("n://{id}", "n://{id}.md", false),
        ("n://{x}/a", "n://b/{x}", false),
        ("n://a{/x}", "n://a{/x,y}", false),
        ("n://a{/x}", "n://a{/x*}", false),
        ("n://a{?q}", "n://a{#q}", false),
        ("n://a/b", "n://a%2Fb", false),
    ] {
        let (left, right) = (template(left), template(right));
        assert_eq!(left.has_shape_of(&right), expected, "{left} and {right}");
        assert_eq!(right.has_shape_of(&left), expected, "{right} and {left}");
    }
}

#[test]
fn variables_are_named_in_order() {
    let template = template("n://{z}/{b}{?y,a*}");
    assert_eq!(template.variables().collect::<Vec<_>>(), ["z", "b", "y", "a"]);
    assert_eq!(template.to_string(), "n://{z}/{b}{?y,a*}");
}

/// A matcher that tries divisions in turn would not end.
#[test]
fn many_ways_to_divide_a_uri_take_no_longer() {
    let repeated = |open: &str, close: &str, between: &str| {
        let expressions: Vec<_> = (0..32).map(|n| format!("{open}v{n}{close}")).collect();
        template(&expressions.join(between))
    };
    for template in [
        repeated("{", "}", "-"),
        repeated("{+", "}", "-"),
        repeated("{/", "}", ""),
        repeated("{.", "*}", ""),
        repeated("{", "}", "--"),
    ] {
        for unit in ["-", "/", ".", "-.", "a-", "/-"] {
            let uri = unit.repeat(MAX_URI / unit.len());
            for end in ["", "#", "/", "?"] {
                let uri = &uri[..uri.len() - end.len()];
                let _ = template.matches(&format!("{uri}{end}"));
            }
        }
    }
    let uri = "-".repeat(MAX_URI);
    let variables = repeated("{+", "}", "-").matches(&uri).unwrap();
    assert_eq!(variables.text("v0").map(str::len), Some(MAX_URI - 62));
}

/// A value of a variable by its operator, as a strategy.
fn value(kind: Kind) -> BoxedStrategy<TextValue> {
    let any = "[a-zé/?#&=+,;:.~% 😀-]{1,6}";
    match kind {
        Kind::Plain => any.prop_map(TextValue::One).boxed(),
        Kind::Empty => "[a-zé/?#&=+,;:.~% -]{0,6}".prop_map(TextValue::One).boxed(),
        Kind::Label => "[a-zé/?#&=+,;:~% -]{0,6}".prop_map(TextValue::One).boxed(),
        // What `{+x}` shows as it is: neither escapes, nor what a query or a fragment begins with.
        Kind::Wide => "[a-zé/&=+,;:.~ -]{1,12}".prop_map(TextValue::One).boxed(),
        Kind::Labels => prop::collection::vec("[a-zé/?#&=+,;:~% -]{0,3}", 1..4)
            .prop_map(TextValue::Many)
            .boxed(),
        Kind::List => prop::collection::vec(any, 1..4).prop_map(TextValue::Many).boxed(),
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    Empty,
    Label,
    Wide,
    List,
    Labels,
}

/// A template, and the kinds of its variables that may be absent or not.
type Case = (&'static str, &'static [(&'static str, Kind)], &'static [(&'static str, Kind)]);

const CASES: &[Case] = &[
    ("n://{a}", &[("a", Kind::Plain)], &[]),
    ("n://{a}/{b}.txt", &[("a", Kind::Plain), ("b", Kind::Plain)], &[]),
    ("n://{a}:{b}@x", &[("a", Kind::Plain), ("b", Kind::Plain)], &[]),
    ("n://{a,b}/x", &[("a", Kind::Plain), ("b", Kind::Empty)], &[]),
    ("n://{a*}/x", &[("a", Kind::List)], &[]),
    ("n://{+a}", &[("a", Kind::Wide)], &[]),
    ("n://{a}/{+b}/{c}.md", &[("a", Kind::Plain), ("b", Kind::Wide), ("c", Kind::Plain)], &[]),
    ("n://x{/a,b}", &[("a", Kind::Empty)], &[("b", Kind::Empty)]),
    ("n://x{/a*}{?b}", &[], &[("a", Kind::List), ("b", Kind::Empty)]),
    ("n://x{.a,b}", &[("a", Kind::Label)], &[("b", Kind::Label)]),
    ("n://x{.a*}", &[("a", Kind::Labels)], &[]),
    ("n://{x}{;a,b*}/y", &[("x", Kind::Plain)], &[("a", Kind::Empty), ("b", Kind::List)]),
    ("n://{+x}{?a,b*}", &[("x", Kind::Wide)], &[("a", Kind::Empty), ("b", Kind::List)]),
    ("n://x?y={y}{&a}{#f}", &[("y", Kind::Plain)], &[("a", Kind::Empty), ("f", Kind::Wide)]),
];

fn case() -> impl Strategy<Value = (&'static str, Variables)> {
    prop::sample::select(CASES).prop_flat_map(|(text, required, optional)| {
        let name = |(name, kind): &(&'static str, Kind)| (Just(*name), value(*kind));
        let required: Vec<_> = required.iter().map(name).collect();
        let optional = optional.iter().map(|variable| prop::option::of(name(variable)));
        (Just(text), required, optional.collect::<Vec<_>>()).prop_map(
            |(text, required, optional)| {
                let all = required.into_iter().chain(optional.into_iter().flatten());
                (text, all.fold(Variables::new(), |all, (name, value)| all.with(name, value)))
            },
        )
    })
}

proptest! {
    #[test]
    fn expanding_then_matching_gives_the_values_back((text, variables) in case()) {
        let template = template(text);
        let uri = template.expand(&variables);
        prop_assert_eq!(template.matches(&uri), Some(variables), "{} gave {}", text, uri);
    }

    #[test]
    fn nothing_panics(text in r"[a-c{}+#./;?&*:,%1 é]{0,24}", uri in ".{0,24}") {
        if let Ok(template) = UriTemplate::parse(&text) {
            let _ = template.matches(&uri);
            assert!(template.has_shape_of(&template));
        }
    }
}
