//! Owns a collection of argument types, one for each thing a user may write.
//! Does not own what is expected of them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    num::{NonZeroI32, NonZeroU8},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Empty {}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Integers {
    pub(super) z: i8,
    pub(super) y: u8,
    pub(super) x: i16,
    pub(super) w: u16,
    pub(super) v: i32,
    pub(super) u: u32,
    pub(super) t: i64,
    pub(super) s: u64,
    pub(super) r: isize,
    pub(super) q: usize,
    pub(super) p: i128,
    pub(super) o: u128,
    pub(super) n: NonZeroU8,
    pub(super) m: NonZeroI32,
}

/// Everything that is not an integer.
#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Primitives {
    /// A short text.
    pub(super) text: String,
    pub(super) single: f32,
    pub(super) double: f64,
    pub(super) flag: bool,
    pub(super) letter: char,
    pub(super) nothing: (),
    pub(super) anything: serde_json::Value,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Addresses {
    pub(super) address: std::net::IpAddr,
    pub(super) gateway: std::net::Ipv4Addr,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Optional {
    pub(super) second: Option<String>,
    pub(super) first: Option<u8>,
    #[serde(default)]
    pub(super) third: Option<i64>,
    pub(super) unit: Option<Plain>,
    pub(super) unit_with_docs: Option<Documented>,
    pub(super) point: Option<Point>,
    pub(super) holes: Vec<Option<i32>>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq, Clone)]
pub(super) struct Point {
    pub(super) y: f64,
    pub(super) x: f64,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Nested {
    /// Where to start.
    pub(super) starting_point: Point,
    pub(super) way_points: Vec<Point>,
    #[serde(rename = "end")]
    pub(super) last: Point,
    pub(super) once: Once,
}

/// Used in one place only, and too long to be small: it has a good deal of documentation.
#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Once {
    /// A field whose documentation makes the definition longer than what counts as small, which
    /// takes a few sentences. This is one of them. And this is another one, to be on the safe side.
    pub(super) field: String,
}

/// Used twice and too long to be small: it has a good deal of documentation.
#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Large {
    /// A field whose documentation makes the definition longer than what counts as small, which
    /// takes a few sentences. This is one of them. And this is another one, to be on the safe side.
    pub(super) field: String,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Twice {
    pub(super) one: Large,
    /// The other.
    pub(super) two: Option<Large>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Tree {
    #[schemars(length(min = 1))]
    pub(super) name: String,
    pub(super) children: Vec<Tree>,
    pub(super) parent: Option<Box<Tree>>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Forest {
    pub(super) trees: Vec<Tree>,
}

/// A newtype around a recursive type.
#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Sapling(pub(super) Tree);

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(super) enum Plain {
    Zebra,
    Ant,
}

/// A scale of temperature.
#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum Documented {
    /// Water freezes at 0.
    Celsius,
    Fahrenheit,
    /// Nothing is below 0.
    Kelvin,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq, Clone, Copy)]
pub(super) enum Single {
    Only,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Enums {
    pub(super) plain: Plain,
    /// How it is measured.
    pub(super) documented: Documented,
    pub(super) single: Single,
    pub(super) many: Vec<Documented>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Internal {
    /// Round.
    Circle {
        radius: f64,
    },
    Rectangle {
        width: u32,
        height: Option<u32>,
    },
    Nothing,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) enum External {
    Unit,
    Newtype(String),
    Pair(u8, u8),
    Fields { b: bool, a: Option<bool> },
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(tag = "t", content = "c")]
pub(super) enum Adjacent {
    One(u8),
    Two,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Tagged {
    pub(super) internal: Internal,
    pub(super) external: Option<External>,
    pub(super) adjacent: Vec<Adjacent>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Maps {
    pub(super) counts: HashMap<String, u32>,
    pub(super) points: BTreeMap<String, Point>,
    pub(super) by_number: BTreeMap<u16, String>,
    pub(super) free: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Strict {
    #[serde(default)]
    pub(super) verbose: bool,
    #[serde(default = "ten", alias = "max")]
    pub(super) limit: u32,
    pub(super) query: String,
}

fn ten() -> u32 {
    10
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Sequences {
    pub(super) pair: (u8, String),
    pub(super) triple: [i32; 3],
    pub(super) set: BTreeSet<String>,
    pub(super) list: Vec<Vec<f64>>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Constrained {
    #[schemars(range(min = 1, max = 100))]
    pub(super) count: u32,
    #[schemars(range(min = -0.5))]
    pub(super) ratio: Option<f64>,
    #[schemars(length(min = 2, max = 5))]
    pub(super) code: String,
    #[schemars(regex(pattern = r"^[a-z]+$"))]
    pub(super) word: String,
    #[schemars(length(max = 2), inner(length(min = 1)))]
    pub(super) tags: Vec<String>,
    #[schemars(extend("multipleOf" = 5, "exclusiveMaximum" = 50))]
    pub(super) steps: i64,
    #[schemars(email)]
    pub(super) email: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Extended {
    #[schemars(extend("x-mcp-header" = "Region", "x-internal" = true, "enum" = ["eu", "us"]))]
    pub(super) region: String,
    #[deprecated]
    #[schemars(title = "Old", example = 3)]
    pub(super) old: Option<u8>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(super) struct Flat {
    pub(super) b: u8,
    #[schemars(flatten)]
    pub(super) point: Point,
    pub(super) a: Option<u8>,
}

/// Calls a macro with every argument type of the zoo.
macro_rules! for_each_argument_type {
    ($call:ident) => {
        $call!(
            Empty,
            Integers,
            Primitives,
            Addresses,
            Optional,
            Point,
            Nested,
            Twice,
            Tree,
            Forest,
            Sapling,
            Enums,
            Tagged,
            Maps,
            Strict,
            Sequences,
            Constrained,
            Extended,
            Flat
        );
    };
}
pub(super) use for_each_argument_type;
