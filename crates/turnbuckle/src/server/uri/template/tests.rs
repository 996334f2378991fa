use proptest::prelude::*;

use super::syntax::{Modifier, Operator};
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
    ] {
        assert_eq!(found(text, uri), None, "{text} with {uri}");
    }
}

#[test]
fn what_is_refused() {
    for (text, sentence) in [
        ("n://{a}{b}", "nobody can tell where `{a}` ends"),
        ("n://{a}-{b}", "between it and `{b}`"),
        ("n://{a}{.b}", "between it and `{.b}`"),
        ("n://{a}{+b}", "nobody can tell where `{a}` ends"),
        ("n://{+a}-{b}", "nobody can tell where `{b}` ends"),
        ("n://{/a}b", "nobody can tell where `{/a}` ends"),
        ("n://{/a}/b", "what comes after `{/a}` also comes in it"),
        ("n://{/a}{/b}", "what comes after `{/a}` also comes in it"),
        ("n://{a*},b", "what comes after `{a*}` also"),
        ("n://{;a}=b", "what comes after `{;a}` also"),
        ("n://{a*,b}", "write it last"),
        ("n://{+a}/{+b}", "both take any text"),
        ("n://{+a}{/b}", "`{/b}` follows `{+a}`"),
        ("n://{+a,b}", "write one variable without `*`"),
        ("n://{+a*}", "write one variable without `*`"),
        ("n://{#a,b}", "write one variable without `*`"),
        ("n://{#a}b", "text follows `{#a}`"),
        ("n://x{?q}/b", "text follows the query"),
        ("n://x{?q}{r}", "`{r}` follows the query"),
        ("n://x{?q}{?r}", "`{?r}` is a second query"),
        ("n://x?a=b{?q}", "write `&` in place"),
        ("n://x{&q}", "write `?` in place"),
        ("n://{+a}?b=c{&q}", "write `{?…}`"),
        ("n://x#y{?q}", "write it last"),
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
fn overlaps() {
    for (left, right, expected) in [
        ("a://{x}", "b://{x}", false),
        ("n://{id}", "n://{name}", true),
        ("n://{id}", "n://all/{x}", false),
        ("n://{id}", "n://all", true),
        ("n://{id}", "n://a%2Fb", true),
        ("n://{id}", "n://a/b", false),
        ("n://{+path}", "n://all/{x}", true),
        ("n://{+path}.md", "n://{x}.txt", false),
        ("n://{+path}.md", "n://{x}", true),
        ("n://{x}/a", "n://{x}/b", false),
        ("n://{x}/a", "n://b/{x}", true),
        ("n://a{/x}", "n://a/{x}/{y}", false),
        ("n://a{/x,y}", "n://a/{x}/{y}", true),
        ("n://a{/x*}", "n://a/b/{y}/c", true),
        ("n://a{/x}", "n://a", true),
        ("n://a{?q}", "n://a{?r}", true),
        ("n://a{?q}", "n://a/{x}", false),
        ("n://a?b=c{&q}", "n://a{?q}", true),
        ("n://a?b=c", "n://a?b=d", false),
        ("n://a{#f}", "n://a#b", true),
        ("n://a{;p}", "n://a{.x}", true),
        ("n://a{;p}/b", "n://a{.x}/c", false),
        ("é://{x}", "%C3%A9://{x}", true),
    ] {
        let (left, right) = (template(left), template(right));
        assert_eq!(left.overlaps(&right), expected, "{left} and {right}");
        assert_eq!(right.overlaps(&left), expected, "{right} and {left}");
        assert!(left.overlaps(&left));
    }
}

#[test]
fn variables_are_named_in_order() {
    let template = template("n://{z}/{b}{?y,a*}");
    assert_eq!(template.variables().collect::<Vec<_>>(), ["z", "b", "y", "a"]);
    assert_eq!(template.to_string(), "n://{z}/{b}{?y,a*}");
}

/// Whatever the template, so that the address that is worst for it need not be known.
#[test]
fn matching_looks_at_each_character_a_few_times() {
    let texts = [
        "{x}",
        "{+x}",
        "{+x}/{y}/a",
        "{x*}",
        "{/x*}",
        "{.x*}",
        "{;x*}",
        "a{?x*}",
        "a?a=a{&x}",
        "{a}/{b}/{c}/{d}/{e}/{f}/{+g}/{h}/{i}/{j}/{k}",
        "{a}a/{b}a/{c}a/{d}a/{e}a",
        "{a}:{b}:{c}:{d}:{e}",
        "a{?b,c,d,e,f,g}{#h}",
    ];
    let units = ["a", "/", "a/", ",", ".", ";x", "&", "?", "%2F", "#", "a:", "é", "x=&"];
    for text in texts {
        let template = template(text);
        for unit in units {
            for length in [100, 1000, 8000] {
                for start in ["", "a", "a?", "a?a=a", "/"] {
                    let uri = format!("{start}{}", unit.repeat(length / unit.len()));
                    let looks = template.read(&tokens(&uri).unwrap()).1;
                    let most = 6 * (uri.len() + text.len());
                    assert!(looks <= most, "{text} with {length} of {unit}: {looks}");
                }
            }
        }
    }
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
        Kind::Short => "[a-zé/?#.]{1,2}".prop_map(TextValue::One).boxed(),
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
    Short,
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

/// Text that often is a template.
const TEMPLATE: &str =
    r"(a|b|/|\.|:|-|,|\?|&|=|\{[+/.;?&]?[a-e](,[f-k])?\*?\}|\{[l-p]:2\}|\{[q-t]\}){1,6}(\{#u\})?";
const URI: &str = r"[abq/.:,?&=;é-]{0,12}";

/// A template that can be matched, and a value for each variable.
fn filled_in() -> impl Strategy<Value = (UriTemplate, Variables)> {
    let parsed = TEMPLATE.prop_filter_map("is refused", |text| UriTemplate::parse(&text).ok());
    parsed.prop_flat_map(|template| {
        let mut values = Vec::new();
        for piece in &template.pieces {
            let Piece::Expression(expression) = piece else { continue };
            values.extend(expression.variables.iter().map(|variable| {
                let kind = match (variable.modifier, expression.operator) {
                    (Modifier::Prefix(_), _) => Kind::Short,
                    (Modifier::Explode, Operator::Label) => Kind::Labels,
                    (Modifier::Explode, _) => Kind::List,
                    (_, Operator::Reserved | Operator::Fragment) => Kind::Wide,
                    (_, Operator::Simple) => Kind::Plain,
                    (_, Operator::Label) => Kind::Label,
                    _ => Kind::Empty,
                };
                (Just(variable.name.clone()), value(kind))
            }));
        }
        let fill = |values: Vec<_>| {
            values.into_iter().fold(Variables::new(), |all, (name, value)| all.with(name, value))
        };
        (Just(template), values.prop_map(fill))
    })
}

/// Two templates of one address, made by putting variables in place of its segments.
fn two_of_one() -> impl Strategy<Value = (String, String, String)> {
    let segment = (r"[ab.:,é-]{1,3}", 0..4, 0..4);
    prop::collection::vec(segment, 1..5).prop_map(|segments| {
        let address = |hide: &dyn Fn(&(String, i32, i32)) -> i32| {
            let mut wide = 0;
            let shown = segments.iter().enumerate().map(|(at, segment)| match hide(segment) {
                0 => format!("/{{x{at}}}"),
                1 if wide == 0 => {
                    wide += 1;
                    format!("/{{+x{at}}}")
                }
                2 => format!("/{{x{at}*}}"),
                _ => format!("/{}", segment.0),
            });
            shown.collect::<String>()
        };
        (address(&|_| 3), address(&|segment| segment.1), address(&|segment| segment.2))
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
    fn no_accepted_template_can_be_read_in_two_ways((template, variables) in filled_in()) {
        let uri = template.expand(&variables);
        prop_assert_eq!(template.matches(&uri), Some(variables), "{} gave {}", template, uri);
    }

    #[test]
    fn what_both_match_overlaps((uri, left, right) in two_of_one()) {
        if let (Ok(left), Ok(right)) = (UriTemplate::parse(&left), UriTemplate::parse(&right)) {
            prop_assert!(left.matches(&uri).is_some(), "{} by {}", uri, left);
            prop_assert!(right.matches(&uri).is_some(), "{} by {}", uri, right);
            prop_assert!(left.overlaps(&right), "{} and {}", left, right);
        }
    }

    #[test]
    fn what_matches_the_address_of_another_overlaps_it((template, variables) in filled_in(), other in filled_in()) {
        let uri = template.expand(&variables);
        if other.0.matches(&uri).is_some() {
            prop_assert!(template.overlaps(&other.0), "{} and {}: {}", template, other.0, uri);
        }
    }

    #[test]
    fn nothing_panics(text in r"[a-c{}+#./;?&*:,%1 é]{0,24}", uri in ".{0,24}") {
        if let Ok(template) = UriTemplate::parse(&text) {
            let _ = template.matches(&uri);
            let _ = template.overlaps(&template);
        }
    }

    #[test]
    fn any_accepted_template_is_matched_in_linear_time(
        text in TEMPLATE,
        unit in r"[abq/.:,?&=;é-]{1,3}",
        end in URI,
    ) {
        if let Ok(template) = UriTemplate::parse(&text) {
            let uri = unit.repeat(2000) + &end;
            let looks = template.read(&tokens(&uri).unwrap()).1;
            prop_assert!(looks <= 6 * (uri.len() + text.len()), "{} looks", looks);
        }
    }
}
