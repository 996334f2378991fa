//! URI templates, and the paths that come from their variables.

use std::path::{Component, Path};

use turnbuckle::server::{SafePath, UriTemplate};

use super::texts;

/// A template and a URI.
pub fn run(data: &[u8]) {
    let Some((text, uri)) = texts(data) else { return };
    stays_below(uri);
    let Ok(template) = UriTemplate::parse(text) else { return };
    let names: Vec<&str> = template.variables().collect();
    assert!(names.iter().all(|name| names.iter().filter(|other| other == &name).count() == 1));
    assert_eq!(UriTemplate::parse(template.as_str()).map(|same| same.to_string()), Ok(text.into()));
    let found = template.matches(uri);
    assert_eq!(template.matches(&upper_case_escapes(uri)), found, "the case of escapes matters");
    let Some(variables) = found else { return };
    assert!(variables.iter().all(|(name, _)| names.contains(&name)));
    // The documentation names the expressions whose values a URI does not show in full.
    if !text.contains(['+', '#', '*', ':', '.', ',', ';']) {
        let expanded = template.expand(&variables);
        assert_eq!(template.matches(&expanded), Some(variables), "{expanded}");
    }
}

fn upper_case_escapes(uri: &str) -> String {
    let mut escape = 0;
    let upper = |character: char| {
        escape = if character == '%' { 2 } else { i32::max(escape - 1, -1) };
        if (0..2).contains(&escape) { character.to_ascii_uppercase() } else { character }
    };
    uri.chars().map(upper).collect()
}

/// A path that is accepted has names only.
fn stays_below(text: &str) {
    let Ok(path) = SafePath::new(text) else { return };
    let names = Path::new(path.as_str()).components();
    assert!(names.clone().all(|part| matches!(part, Component::Normal(_))), "{text:?}");
    assert_eq!(names.count(), path.segments().count());
    assert!(!text.contains(['\\', ':', '\0']));
}
