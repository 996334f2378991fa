//! Files as hosts write them.

use std::path::Path;

use super::*;

fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("t0p".to_owned()),
        "HOME" => Some("/home/ada".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> McpConfig {
    McpConfig::parse_with(text, env).unwrap()
}

fn process(config: &McpConfig, name: &str) -> std::process::Command {
    match config.server(name).unwrap().unwrap() {
        ServerConfig::Process(process) => process.command(),
        other => panic!("{other:?}"),
    }
}

fn http<'a>(config: &'a McpConfig, name: &str) -> &'a HttpConfig {
    match config.server(name).unwrap().unwrap() {
        ServerConfig::Http(http) => http,
        other => panic!("{other:?}"),
    }
}

fn args(command: &std::process::Command) -> Vec<&str> {
    command.get_args().filter_map(|argument| argument.to_str()).collect()
}

fn env_of(command: &std::process::Command) -> Vec<(&str, Option<&str>)> {
    let text = |text: &'_ std::ffi::OsStr| text.to_str().unwrap().to_owned().leak() as &str;
    command.get_envs().map(|(name, value)| (text(name), value.map(text))).collect()
}

#[test]
fn a_desktop_host_s_file() {
    let config = parse(
        r#"{
            "globalShortcut": "",
            "mcpServers": {
                "zeta": {"command": "npx", "args": ["-y", "fs", "${userHome}/docs"],
                         "env": {"KEY": "${TOKEN}", "PORT": 8080, "DEBUG": true, "HOME": null}},
                "alpha": {"command": "python", "cwd": "/srv", "disabled": true, "autoApprove": []}
            }
        }"#,
    );
    let names: Vec<&str> = config.servers().map(|(name, _)| name).collect();
    assert_eq!(names, ["zeta", "alpha"], "as the file has them");
    let zeta = process(&config, "zeta");
    assert_eq!(zeta.get_program(), "npx");
    assert_eq!(args(&zeta), ["-y", "fs", "/home/ada/docs"]);
    let expected =
        [("DEBUG", Some("true")), ("HOME", None), ("KEY", Some("t0p")), ("PORT", Some("8080"))];
    assert_eq!(env_of(&zeta), expected);
    assert!(!config.is_disabled("zeta") && config.is_disabled("alpha"));
    assert_eq!(process(&config, "alpha").get_current_dir(), Some(Path::new("/srv")));
    assert!(config.server("beta").is_none() && !config.is_disabled("beta"));
}

#[test]
fn an_editor_s_file_with_comments_and_inputs() {
    let text = r#"{
        "inputs": [{"type": "promptString", "id": "key", "password": true}], // asked once
        "servers": {
            "a": {"type": "stdio", "command": "${workspaceFolder}/a", "args": ["${input:key}"],},
            "b": {"type": "http", "url": "https://b/", "headers": {"X": "Bearer ${env:TOKEN}"}},
        },
    }"#;
    let reader = || McpConfig::reader().env(env).workspace_folder("/work/loom");
    let config = reader().inputs(|id| Some(format!("<{id}>"))).parse(text).unwrap();
    let a = process(&config, "a");
    assert_eq!((a.get_program().to_str(), args(&a)), (Some("/work/loom/a"), vec!["<key>"]));
    assert_eq!(http(&config, "b").headers().collect::<Vec<_>>(), [("X", "Bearer t0p")]);

    let config = reader().parse(text).unwrap();
    let error = config.server("a").unwrap().unwrap_err().to_string();
    assert!(
        error.contains("server `a`: `args[0]`: `${input:key}` is asked of the user"),
        "{error}"
    );
    assert!(config.server("b").unwrap().is_ok());
}

#[test]
fn every_word_for_an_address_and_its_kind() {
    let config = parse(
        r#"{"mcpServers": {
            "windsurf": {"serverUrl": "https://w/${TOKEN}"},
            "gemini": {"httpUrl": "https://g/"},
            "cursor": {"type": "streamableHttp", "url": "http://c/", "enabled": false},
            "old": {"type": "sse", "url": "http://o/sse", "command": null}
        }}"#,
    );
    let urls: Vec<&str> =
        ["windsurf", "gemini", "cursor", "old"].map(|name| http(&config, name).url()).to_vec();
    assert_eq!(urls, ["https://w/t0p", "https://g/", "http://c/", "http://o/sse"]);
    assert!(config.is_disabled("cursor"));
    assert!(!format!("{config:?}").contains("t0p"));
}

#[test]
fn the_value_of_a_variable_in_a_directory_is_not_shown() {
    let config = parse(r#"{"mcpServers": {"a": {"command": "a", "cwd": "/srv/${TOKEN}"}}}"#);
    let command = process(&config, "a");
    assert_eq!(command.get_current_dir(), Some(std::path::Path::new("/srv/t0p")));
    let shown = format!("{config:?}");
    assert!(shown.contains("/srv/${TOKEN}") && !shown.contains("t0p"), "{shown}");
}

#[test]
fn a_broken_entry_costs_only_itself_and_says_where_it_is() {
    for (entry, expected) in [
        (r#"{}"#, "neither `command` nor `url`"),
        (r#"7"#, "an object is expected"),
        (r#"{"command": "a", "url": "b"}"#, "`command` and `url` are both there"),
        (r#"{"url": "a", "serverUrl": "b"}"#, "`url` and `serverUrl` are both there"),
        (r#"{"command": ""}"#, "`command`: is empty"),
        (r#"{"command": ["a"]}"#, "`command`: a string is expected"),
        (r#"{"command": "${NONE}"}"#, "`command`: the environment variable `NONE` is not set"),
        (r#"{"command": "a", "args": "b"}"#, "`args`: an array"),
        (r#"{"command": "a", "args": ["b", []]}"#, "`args[1]`: a string is expected"),
        (r#"{"command": "a", "args": ["\u0000"]}"#, "`args[0]`: holds a zero character"),
        (r#"{"command": "a", "env": ["K=v"]}"#, "`env`: an object is expected"),
        (r#"{"command": "a", "env": {"K": "${NONE}"}}"#, "`env.K`: the environment variable"),
        (r#"{"command": "a", "type": "http"}"#, "`type`: `http` does not go with `command`"),
        (r#"{"url": "a", "type": "stdio"}"#, "`type`: `stdio` does not go with `url`"),
        (r#"{"url": "a", "type": "ws"}"#, "`type`: `ws` is not known here"),
        (r#"{"url": "a", "headers": {"K": {}}}"#, "`headers.K`: a string is expected"),
    ] {
        let text = format!(r#"{{"mcpServers": {{"bad": {entry}, "good": {{"command": "a"}}}}}}"#);
        let config = parse(&text);
        let error = config.server("bad").unwrap().unwrap_err().to_string();
        assert!(error.contains("server `bad`: ") && error.contains(expected), "{entry}: {error}");
        assert!(config.server("good").unwrap().is_ok());
    }
}

#[test]
fn of_two_entries_of_one_name_the_last_counts() {
    let config = parse(
        r#"{"servers": {"a": {"command": "1"}, "b": {"command": "2"}, "a": {"command": "3"}}}"#,
    );
    assert_eq!(process(&config, "a").get_program(), "3");
    assert_eq!(config.servers().count(), 2);
    let both =
        parse(r#"{"servers": {"a": {"command": "1"}}, "mcpServers": {"b": {"command": "2"}}}"#);
    assert_eq!(both.servers().count(), 2);
}

#[test]
fn a_file_that_is_no_configuration_is_an_error() {
    for (text, expected) in [
        ("", "expected an object"),
        ("[{}]", "expected an object"),
        ("{\"mcpServers\": {}", "line 1"),
        ("{\"mcpServers\": {'a': {}}}", "line 1"),
        (&format!("{{\"mcpServers\": {{\"a\": {}", "[".repeat(100_000)), "nesting"),
        ("7", "expected an object"),
        ("{\n\"mcpServers\": {\"a\": nope}}", "line 2"),
        (r#"{"mcpServers": []}"#, "an object of servers"),
        (r#"{"other": {}}"#, "neither `mcpServers` nor `servers`"),
    ] {
        let error = McpConfig::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Codec);
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
    assert_eq!(McpConfig::parse(r#"{"mcpServers": {}}"#).unwrap().servers().count(), 0);
}

#[test]
fn variables_of_a_file_are_read_and_those_of_the_entry_go_before() {
    let root = std::env::temp_dir().join(format!("turnbuckle-env-file-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join(".env"), "# ours\nA=1\nexport B=\"t w o\"\nC=3\n").unwrap();
    std::fs::write(root.join("bad.env"), "A=1\nnope s3cret\n").unwrap();
    let path = root.join("mcp.json");
    let text = r#"{"servers": {
        "near": {"command": "a", "envFile": ".env", "env": {"B": "mine", "C": null}},
        "named": {"command": "a", "envFile": "${workspaceFolder}/.env"},
        "none": {"command": "a", "envFile": "${TOKEN}.env"},
        "bad": {"command": "a", "envFile": "bad.env"},
        "kind": {"command": "a", "envFile": 7.5, "args": []},
        "url": {"url": "http://h/", "envFile": "no.env"}
    }}"#;
    std::fs::write(&path, text).unwrap();
    let config = McpConfig::reader().env(env).read(&path).unwrap();
    let near = process(&config, "near");
    assert_eq!(env_of(&near), [("A", Some("1")), ("B", Some("mine")), ("C", None)]);
    let named = process(&config, "named");
    assert_eq!(env_of(&named), [("A", Some("1")), ("B", Some("t w o")), ("C", Some("3"))]);
    assert!(!format!("{config:?}").contains("t w o"), "{config:?}");
    let wrong = |name: &str| config.server(name).unwrap().unwrap_err().to_string();
    assert!(
        wrong("none").contains("server `none`: `envFile`: ${TOKEN}.env: "),
        "{}",
        wrong("none")
    );
    assert!(wrong("bad").contains("`envFile`: bad.env: line 2: `NAME=value`"), "{}", wrong("bad"));
    assert!(!wrong("bad").contains("s3cret") && wrong("kind").contains("`envFile`: 7.5: "));
    assert!(config.server("url").unwrap().is_ok(), "an address has no environment");
    // A text has no folder of its own.
    let text = r#"{"servers": {"a": {"command": "a", "envFile": ".env"}}}"#;
    let error = parse(text).server("a").unwrap().unwrap_err().to_string();
    assert!(error.contains("there is no folder that `.env` could be in"), "{error}");
    let reader = McpConfig::reader().env(env).workspace_folder(&root);
    assert_eq!(env_of(&process(&reader.parse(text).unwrap(), "a")).len(), 3);
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn paths_are_those_of_the_file() {
    let root = std::env::temp_dir().join(format!("turnbuckle-config-{}", std::process::id()));
    let folder = root.join(".vscode");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mcp.json");
    let text =
        "\u{feff}{\"servers\": {\"a\": {\"command\": \"${workspaceFolder}\", \"cwd\": \"sub\"}}}";
    std::fs::write(&path, text).unwrap();
    let config = McpConfig::read(&path).unwrap();
    let command = process(&config, "a");
    assert_eq!(Path::new(command.get_program()), root);
    assert_eq!(command.get_current_dir(), Some(&*folder.join("sub")));

    std::fs::write(&path, " ".repeat(BYTES as usize + 1)).unwrap();
    assert_eq!(McpConfig::read(&path).unwrap_err().kind(), ErrorKind::Limit);
    std::fs::write(&path, [0xff]).unwrap();
    assert_eq!(McpConfig::read(&path).unwrap_err().kind(), ErrorKind::Io);
    let missing = McpConfig::read(root.join("none.json")).unwrap_err().to_string();
    assert!(missing.contains("none.json can't be read"), "{missing}");
    std::fs::remove_dir_all(&root).unwrap();
}
