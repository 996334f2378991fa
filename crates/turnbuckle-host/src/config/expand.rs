//! Expands the variables in a string of a configuration.
//!
//! The crates for this also expand `$NAME`, which stands for itself here, and do not know the prefixes
//! `env:` and `input:`.

use std::path::Path;

/// Returns the value of a name.
pub(super) type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The sources of values.
pub(super) struct Variables<'a> {
    pub(super) env: &'a Lookup<'a>,
    pub(super) inputs: Option<&'a Lookup<'a>>,
    pub(super) workspace: Option<&'a Path>,
}

/// Returns the text with its variables replaced, or a sentence that names a variable and never a value.
/// Values are not expanded again, no shell is involved, and a `$` that opens no `${…}` is a `$`.
pub(super) fn expand(text: &str, variables: &Variables<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else {
            return Err("a `${` is never closed".to_owned());
        };
        out.push_str(&value(&inside[..end], variables)?);
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn value(inside: &str, variables: &Variables<'_>) -> Result<String, String> {
    if let Some(id) = inside.strip_prefix("input:") {
        return input(id, variables);
    }
    if let Some(value) = predefined(inside, variables) {
        return value;
    }
    let (named, name) = match inside.strip_prefix("env:") {
        Some(name) => (true, name),
        None => (false, inside),
    };
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    if default.is_some_and(|default| default.contains("${")) {
        return Err(format!(
            "the default of `{name}` holds another variable, which is not supported"
        ));
    }
    // Windows has names like `ProgramFiles(x86)`: any name is allowed after `env:`.
    if name.is_empty() || !(named || is_name(name)) {
        return Err(format!("`${{{inside}}}` is not a variable that is known here"));
    }
    match ((variables.env)(name), default) {
        // As in a shell, an empty variable counts as unset where there is a default.
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!("the environment variable `{name}` is not set")),
    }
}

fn input(id: &str, variables: &Variables<'_>) -> Result<String, String> {
    let Some(inputs) = variables.inputs else {
        return Err(format!(
            "`${{input:{id}}}` is asked of the user: set a function that asks with `ConfigReader::inputs`"
        ));
    };
    inputs(id).ok_or_else(|| format!("the input `{id}` was not given"))
}

/// Returns the value of a variable that editors define.
fn predefined(name: &str, variables: &Variables<'_>) -> Option<Result<String, String>> {
    let folder = |of: fn(&Path) -> Option<String>| {
        let unknown = || format!("there is no folder that `${{{name}}}` could be");
        variables.workspace.and_then(of).ok_or_else(unknown)
    };
    Some(match name {
        "userHome" => (variables.env)("HOME")
            .or_else(|| (variables.env)("USERPROFILE"))
            .ok_or_else(|| "there is no home directory: `HOME` is not set".to_owned()),
        "workspaceFolder" => folder(|path| path.to_str().map(str::to_owned)),
        "workspaceFolderBasename" => folder(|path| path.file_name()?.to_str().map(str::to_owned)),
        "pathSeparator" | "/" => Ok(std::path::MAIN_SEPARATOR.to_string()),
        _ => return None,
    })
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let env = |name: &str| match name {
            "TOKEN" => Some("t0p".to_owned()),
            "NESTED" => Some("${TOKEN}$(id)".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/ada".to_owned()),
            "Program(x86)" => Some("p".to_owned()),
            _ => None,
        };
        let variables =
            Variables { env: &env, inputs: None, workspace: Some(Path::new("/work/loom")) };
        expand(text, &variables)
    }

    #[test]
    fn every_form_becomes_its_value() {
        for (text, expected) in [
            ("plain", "plain"),
            ("Bearer ${TOKEN}", "Bearer t0p"),
            ("${TOKEN}${env:TOKEN}", "t0pt0p"),
            ("${TOKEN:-x}", "t0p"),
            ("${NONE:-x y}", "x y"),
            ("${NONE:-}", ""),
            ("${env:NONE:-x}", "x"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${env:Program(x86)}", "p"),
            ("${userHome}/a", "/home/ada/a"),
            ("${workspaceFolder}/b", "/work/loom/b"),
            ("${workspaceFolderBasename}", "loom"),
            ("$TOKEN $ $$ {TOKEN} $", "$TOKEN $ $$ {TOKEN} $"),
            // Values are not expanded again.
            ("${NESTED}", "${TOKEN}$(id)"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_named() {
        for (text, expected) in [
            ("${NONE}", "`NONE` is not set"),
            ("a ${env:NONE}", "`NONE` is not set"),
            ("${input:key}", "`${input:key}` is asked of the user"),
            ("${config:a.b}", "`${config:a.b}` is not a variable that is known"),
            ("${}", "`${}` is not a variable"),
            ("${env:}", "is not a variable"),
            ("${1A}", "is not a variable"),
            ("${TOKEN", "never closed"),
            ("${NONE:-${TOKEN}}", "holds another variable"),
        ] {
            let error = expanded(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("t0p"), "{error}");
        }
    }

    #[test]
    fn inputs_and_folders_are_asked_for_where_they_are_needed() {
        let inputs = |id: &str| (id == "key").then(|| "k".to_owned());
        let none = Variables { env: &|_| None, inputs: Some(&inputs), workspace: None };
        assert_eq!(expand("${input:key}", &none).as_deref(), Ok("k"));
        assert!(expand("${input:other}", &none).unwrap_err().contains("`other` was not given"));
        assert!(expand("${workspaceFolder}", &none).unwrap_err().contains("no folder"));
        assert!(expand("${userHome}", &none).unwrap_err().contains("`HOME`"));
    }
}
