use super::zoo::*;
use crate::server::schema::decode_arguments;

macro_rules! says { ($t:ty, $text:expr) => { match decode_arguments::<$t>($text, None) { Ok(v) => eprintln!("{:60} OK {v:?}", $text), Err(e) => eprintln!("{:60} {e}   @{}", $text, e.problems[0].path) } } }

#[test]
fn dump_decode() {
    says!(Point, r#"{"x":"a","y":1}"#);
    says!(Point, r#"{"y":1}"#);
    says!(Point, r#"[1,2]"#);
    says!(Point, r#"null"#);
    says!(Point, r#"{"x":1,"y":1,"x":2}"#);
    says!(Point, r#"{"x":1,"y":1}}"#);
    says!(Point, r#"{"x":1e999,"y":1}"#);
    says!(Point, r#"{"x":1,"#);
    says!(Strict, r#"{"query":"a","colour":1}"#);
    says!(Strict, r#"{"query":"a","limit":-1}"#);
    says!(Strict, r#"{"query":"a","limit":1.5}"#);
    says!(Strict, r#"{"query":"a","limit":1.0}"#);
    says!(Strict, r#"{"query":"a","limit":true}"#);
    says!(Strict, r#"{"query":"a","limit":4294967296}"#);
    says!(Enums, r#"{"plain":"dog"}"#);
    says!(Enums, r#"{"plain":5}"#);
    says!(Enums, r#"{"plain":{"dog":null}}"#);
    says!(Enums, r#"{"plain":"ant","documented":"kelvin","single":"Only","many":["celsius",
      7]}"#);
    says!(Enums, r#"{"plain":"ant","documented":"kelvin","single":"Only","many":["celsius","x"]}"#);
    says!(Nested, r#"{"startingPoint":{"x":1,"y":2},"wayPoints":[{"x":1,"y":2},{"x":1}]}"#);
    says!(Nested, r#"{"startingPoint":{"x":1,"y":2},"wayPoints":[{"x":1,"y":2},{"x":[],"y":1}]}"#);
    says!(Nested, r#"{"startingPoint":5}"#);
    says!(Nested, r#"{"startingPoint":[1]}"#);
    says!(Tagged, r#"{"internal":{"kind":"circle"},"adjacent":[]}"#);
    says!(Tagged, r#"{"internal":{"kind":"circle","radius":"x"},"adjacent":[]}"#);
    says!(Tagged, r#"{"internal":{"kind":"oval"},"adjacent":[]}"#);
    says!(Tagged, r#"{"internal":{},"adjacent":[]}"#);
    says!(Tagged, r#"{"internal":5,"adjacent":[]}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[{"t":"Three"}]}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[{"t":"One"}]}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[{"t":"One","c":300}]}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[5]}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":{"Fields":{}}}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":{"Fields":{"b":3}}}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":{"Pair":[1]}}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":{"Pair":[1,2,3]}}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":"Newtype"}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":"Other"}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":{"Unit":1}}"#);
    says!(Tagged, r#"{"internal":{"kind":"nothing"},"adjacent":[], "external":{"Unit":null, "x":1}}"#);
    says!(Sequences, r#"{"pair":[1,2]}"#);
    says!(Sequences, r#"{"pair":[1]}"#);
    says!(Sequences, r#"{"pair":[1,"a","b"]}"#);
    says!(Sequences, r#"{"pair":[1,"a"],"triple":[1,2]}"#);
    says!(Sequences, r#"{"pair":[1,"a"],"triple":[1,2,3],"set":{}}"#);
    says!(Maps, r#"{"counts":{"a":-1}}"#);
    says!(Maps, r#"{"counts":{"a b.c":-1}}"#);
    says!(Maps, r#"{"counts":{},"points":{"p":{}}}"#);
    says!(Maps, r#"{"counts":{},"points":{},"by_number":{"x":"a"}}"#);
    says!(Maps, r#"{"counts":{},"points":{},"by_number":{"70000":"a"}}"#);
    says!(Integers, r#"{"z":200}"#);
    says!(Integers, r#"{"t":9223372036854775808}"#);
    says!(Integers, r#"{"n":0}"#);
    says!(Integers, r#"{"m":0}"#);
    says!(Integers, r#"{"s":1e30}"#);
    says!(Primitives, r#"{"letter":"ab"}"#);
    says!(Primitives, r#"{"flag":"yes"}"#);
    says!(Primitives, r#"{"nothing":1}"#);
    says!(Primitives, r#"{"address":"x"}"#);
    says!(Primitives, r#"{"text":null}"#);
    says!(Flat, r#"{"b":1,"x":"q","y":1}"#);
    says!(Flat, r#"{"b":1}"#);
    says!(Tree, &format!(r#"{{"name":"x","children":{}"#, r#"[{"name":"a","children":"#.repeat(100)));
    says!(Strict, &format!(r#"{{"query":"a","{}":1}}"#, "long".repeat(50)));
    says!(Enums, &format!(r#"{{"plain":"{}"}}"#, "long".repeat(50)));
    says!(Primitives, &format!(r#"{{"letter":"{}"}}"#, "long".repeat(50)));
    says!(Strict, r#"{"query":"a","a`, expected `b":1}"#);
    says!(Strict, r#"{"limit":"a, expected b"}"#);
}
