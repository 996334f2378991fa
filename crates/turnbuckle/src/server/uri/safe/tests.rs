use super::*;
use crate::server::uri::UriTemplate;

#[test]
fn paths_that_lead_down_are_fine() {
    for path in
        ["a", "a/b/c.txt", ".hidden", "..a", "a..b", "%2e%2e%2f", "é/ü", "a b", "console", "com"]
    {
        assert_eq!(SafePath::new(path).unwrap().as_str(), path);
    }
}

#[test]
fn all_others_are_refused() {
    for path in [
        "",
        ".",
        "..",
        "../a",
        "a/..",
        "a/../b",
        "./a",
        "a/./b",
        "/",
        "/a",
        "//a",
        "a//b",
        "a/",
        "\\",
        "\\\\server\\share",
        "a\\..\\b",
        "c:",
        "C:/a",
        "c:a",
        "a:stream",
        "a\0b",
        "a\nb",
        "...",
        "a/.. ",
        "a.",
        "a ",
        "CON",
        "nul",
        "a/aux.txt",
        "com1",
        "LPT9.x.y",
        "COM¹",
        "nul .txt",
        "conin$",
        "file:///a",
        "\u{7f}",
    ] {
        assert!(SafePath::new(path).is_err(), "{path:?}");
        assert!(PathSegment::new(path).is_err(), "{path:?}");
        let json = serde_json::to_string(path).unwrap();
        assert!(serde_json::from_str::<SafePath>(&json).is_err(), "{path:?}");
        assert!(serde_json::from_str::<PathSegment>(&json).is_err(), "{path:?}");
    }
    assert!(PathSegment::new("a/b").is_err());
}

#[test]
fn it_is_the_decoded_text_that_is_looked_at() {
    let template = UriTemplate::parse("file:///{+path}").unwrap();
    let path = |uri: &str| SafePath::new(template.matches(uri).unwrap().text("path").unwrap());
    for uri in [
        "file:///%2e%2e%2fsecrets",
        "file:///a/%2E%2E/b",
        "file:///a/..%2fb",
        "file:////etc/passwd",
        "file:///%2fetc%2fpasswd",
        "file:///..%5cb",
        "file:///c%3a/b",
        "file:///a%00.txt",
    ] {
        assert!(path(uri).is_err(), "{uri}");
    }
    assert_eq!(path("file:///%252e%252e%252fsecrets").unwrap().as_str(), "%2e%2e%2fsecrets");
}

#[test]
fn a_schema_says_it_is_a_string() {
    let schema = serde_json::to_value(schemars::schema_for!(SafePath)).unwrap();
    assert_eq!(schema["type"], "string");
    assert_eq!(serde_json::to_string(&SafePath::new("a/b").unwrap()).unwrap(), r#""a/b""#);
}

#[cfg(unix)]
#[test]
fn links_may_not_lead_out() {
    use std::{fs, os::unix::fs::symlink};

    let place = crate::server::uri::directory::TempDir::new("safe");
    let (root, outside) = (place.path().join("root"), place.path().join("outside"));
    fs::create_dir_all(root.join("inner")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    // Its name begins with the root's.
    fs::create_dir_all(place.path().join("root-too")).unwrap();
    fs::write(root.join("inner/a.txt"), "a").unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    symlink(root.join("inner"), root.join("down")).unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink("../outside/secret", root.join("file")).unwrap();
    symlink("../root-too", root.join("sibling")).unwrap();
    symlink(&root, place.path().join("alias")).unwrap();

    let join = |path: &str| safe_join(&root, &SafePath::new(path).unwrap());
    let real = root.canonicalize().unwrap();
    assert_eq!(join("inner/a.txt").unwrap(), real.join("inner/a.txt"));
    assert_eq!(join("down/a.txt").unwrap(), real.join("inner/a.txt"));
    for path in ["out", "out/secret", "file", "sibling"] {
        assert_eq!(join(path).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{path}");
    }
    assert_eq!(join("none").unwrap_err().kind(), io::ErrorKind::NotFound);
    let alias = place.path().join("alias");
    let path = SafePath::new("inner/a.txt").unwrap();
    assert_eq!(
        safe_join(&alias, &path).unwrap(),
        real.join("inner/a.txt"),
        "the root may be a link"
    );
}
