//! Owns where the schemas are and how they are read.
//! Does not own what is checked against them.

use std::{
    cell::OnceCell,
    env, fs,
    io::{self, Write as _},
    path::PathBuf,
    sync::Once,
};

use jsonschema::ValidatorMap;
use serde_json::{Map, Value};
use turnbuckle_types::Revision;

/// The directory of the schemas; `None` where it may be missing and is.
pub(crate) fn directory() -> Option<PathBuf> {
    let named = env::var_os("TURNBUCKLE_SPEC");
    let must_exist = named.is_some() || env::var_os("CI").is_some();
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec");
    let directory = named.map_or_else(beside, PathBuf::from);
    if directory.is_dir() {
        return Some(directory);
    }
    let place = directory.display();
    assert!(!must_exist, "the schemas of the protocol are not at {place}");
    // Past the macros, whose output the test harness keeps to itself when a test passes.
    static SAY: Once = Once::new();
    SAY.call_once(|| {
        let _ = writeln!(
            io::stderr(),
            "The schema oracle did NOT run: no schemas at {place}. TURNBUCKLE_SPEC names them."
        );
    });
    None
}

/// One revision's schema.
pub(crate) struct Schema {
    pub(crate) revision: Revision,
    /// `definitions` or `$defs`.
    key: &'static str,
    root: Value,
    validators: OnceCell<ValidatorMap>,
}

impl Schema {
    /// Every revision's schema; empty where the directory may be missing and is.
    pub(crate) fn all() -> Vec<Schema> {
        let Some(directory) = directory() else { return Vec::new() };
        let read = |revision: Revision| {
            let path = directory.join(revision.as_str()).join("schema.json");
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let root: Value = serde_json::from_str(&text).unwrap();
            let key = if root.get("$defs").is_some() { "$defs" } else { "definitions" };
            Schema { revision, key, root, validators: OnceCell::new() }
        };
        Revision::ALL.into_iter().map(read).collect()
    }

    pub(crate) fn definitions(&self) -> &Map<String, Value> {
        self.root[self.key].as_object().unwrap()
    }

    pub(crate) fn has(&self, definition: &str) -> bool {
        self.definitions().contains_key(definition)
    }

    /// What a `$ref` points to.
    pub(crate) fn resolve(&self, reference: &str) -> &Value {
        let name = reference.rsplit('/').next().unwrap();
        self.definitions().get(name).unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    /// What is wrong with `value` as this definition.
    pub(crate) fn errors(&self, definition: &str, value: &Value) -> Vec<String> {
        let validators =
            self.validators.get_or_init(|| jsonschema::options().build_map(&self.root).unwrap());
        let validator = validators.get(&format!("#/{}/{definition}", self.key)).unwrap();
        let errors = validator.iter_errors(value);
        errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
    }
}
