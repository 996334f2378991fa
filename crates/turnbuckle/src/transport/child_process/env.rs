//! The environment a child gets.
//!
//! Owns: which variables of this process a child may see. Does not own: variables
//! that the caller set on the command, which always pass.

use std::{
    ffi::{OsStr, OsString},
    process::Command,
};

use super::platform;

/// Where a child's environment comes from, besides what the caller set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Environment {
    /// The platform's allow-list, and these names.
    Allowed(Vec<OsString>),
    /// Everything this process has.
    Inherited,
}

/// Puts the environment on the command. What the caller set or removed there wins.
pub(super) fn apply(environment: &Environment, command: &mut Command) {
    let Environment::Allowed(extra) = environment else { return };
    let explicit: Vec<(OsString, Option<OsString>)> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned)))
        .collect();
    command.env_clear();
    command.envs(select(std::env::vars_os(), extra));
    for (name, value) in explicit {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// The variables that pass.
fn select(
    variables: impl Iterator<Item = (OsString, OsString)>,
    extra: &[OsString],
) -> Vec<(OsString, OsString)> {
    variables
        .filter(|(name, _)| extra.contains(name) || is_listed(name))
        // An exported shell function is code that the child's shell would run.
        .filter(|(_, value)| !value.as_encoded_bytes().starts_with(b"()"))
        .collect()
}

fn is_listed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // Names are compared as the platform compares them.
    let name = platform::fold_name(name);
    platform::ENV_NAMES.contains(&name.as_ref())
        || platform::ENV_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn only_listed_and_added_names_pass() {
        let all = pairs(&[
            ("PATH", "/bin"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("MINE", "1"),
            ("PATHOLOGY", "no"),
        ]);
        let passed = select(all.into_iter(), &[OsString::from("MINE")]);
        assert_eq!(passed, pairs(&[("PATH", "/bin"), ("MINE", "1")]));
    }

    #[cfg(unix)]
    #[test]
    fn prefixes_pass_and_exported_functions_do_not() {
        let all = pairs(&[
            ("LC_ALL", "C"),
            ("XDG_CONFIG_HOME", "/etc"),
            ("LC", "no"),
            ("TERM", "() { :; }; echo"),
        ]);
        let passed = select(all.into_iter(), &[]);
        assert_eq!(passed, pairs(&[("LC_ALL", "C"), ("XDG_CONFIG_HOME", "/etc")]));
    }

    #[test]
    fn what_the_caller_said_wins() {
        let mut command = Command::new("x");
        command.env("EXTRA", "1").env("PATH", "/mine").env_remove("HOME");
        apply(&Environment::Allowed(Vec::new()), &mut command);
        let value = |name: &str| command.get_envs().find(|(n, _)| *n == name).map(|(_, v)| v);
        assert_eq!(value("EXTRA"), Some(Some(OsStr::new("1"))));
        assert_eq!(value("PATH"), Some(Some(OsStr::new("/mine"))));
        // Cleared, so that a removal leaves nothing behind.
        assert_eq!(value("HOME"), None);
    }

    #[test]
    fn inheriting_leaves_the_command_alone() {
        let mut command = Command::new("x");
        command.env("EXTRA", "1");
        apply(&Environment::Inherited, &mut command);
        assert_eq!(command.get_envs().count(), 1);
    }
}
