//! Owns what listings have in common: who offers how many of what, names and titles, columns.
//! Does not own what is listed.

use turnbuckle::Client;

use crate::output::one_line;

/// `notes 1.0 offers 2 tools (revision 2026-07-28).`
pub(crate) fn heading(client: &Client, offered: &str) -> String {
    let revision = client.revision();
    format!("{} offers {offered} (revision {revision}).\n", server(client))
}

/// Who a server says that it is.
fn server(client: &Client) -> String {
    match client.server_info() {
        Some(info) => format!("{} {}", one_line(&info.name), one_line(&info.version)),
        None => "The server".to_owned(),
    }
}

/// `no tools`, `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A name with its title, and the description below.
pub(crate) fn entry(name: &str, title: Option<&str>, description: Option<&str>) -> String {
    let mut text = one_line(name);
    if let Some(title) = title.filter(|title| *title != name) {
        text.push_str(&format!(" - {}", one_line(title)));
    }
    text.push('\n');
    for line in description.unwrap_or_default().lines() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// Rows of a name, what kind of thing it is, and what is said of it.
pub(crate) fn table(rows: &[[String; 3]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, kinds) = (width(0), width(1).min(40));
    let mut text = String::new();
    for [name, kind, description] in rows {
        let row = format!("    {name:names$}  {kind:kinds$}  {description}");
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted() {
        let counts = [0, 1, 2].map(|count| counted(count, "tool"));
        assert_eq!(counts, ["no tools", "1 tool", "2 tools"]);
    }

    #[test]
    fn a_title_is_shown_if_it_says_more_than_the_name() {
        assert_eq!(entry("a", Some("A"), Some("x\ny")), "a - A\n  x\n  y\n");
        assert_eq!(entry("a", Some("a"), None), "a\n");
    }
}
