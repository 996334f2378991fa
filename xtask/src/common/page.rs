//! Pages of which a part is generated.

use std::path::Path;

use super::files::{read, write};

/// Puts `text` between the two marks of the page.
pub(crate) fn update(path: &Path, marks: &[impl AsRef<str>; 2], text: &str) -> Result<(), String> {
    write(path, &replaced(&read(path)?, path, marks, text)?)
}

/// Whether the page has `text` between the two marks.
pub(crate) fn is_current(
    path: &Path,
    marks: &[impl AsRef<str>; 2],
    text: &str,
) -> Result<bool, String> {
    let page = read(path)?;
    Ok(replaced(&page, path, marks, text)? == page)
}

fn replaced(
    page: &str,
    path: &Path,
    [begin, end]: &[impl AsRef<str>; 2],
    text: &str,
) -> Result<String, String> {
    let (begin, end) = (begin.as_ref(), end.as_ref());
    let parts =
        page.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{} has no `{begin}`", path.display()))?;
    Ok(format!("{before}{begin}\n\n{text}\n{end}{after}"))
}

/// Formats a table of Markdown that is readable as plain text: every column but the last is padded.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let last = head.len() - 1;
    let mut lines: Vec<Vec<String>> = vec![head, vec!["---".to_owned(); last + 1]];
    lines.extend(rows);
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..last).map(width).chain([0]).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("| {cell:width$} "));
        text.extend(cells);
        text.push_str("|\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_keeps_what_is_around_the_part() {
        let replaced = |page: &str| replaced(page, Path::new("p.md"), &["<a>", "<b>"], "new\n");
        let new = replaced("# Page\n<a>\nold\n<b>\nend\n").unwrap();
        assert_eq!(new, "# Page\n<a>\n\nnew\n\n<b>\nend\n");
        assert_eq!(replaced(&new), Ok(new.clone()));
        assert!(replaced("# Page").is_err());
    }

    #[test]
    fn a_table_pads_every_column_but_the_last() {
        let table = table(&["a", "b"], [["größer", "c"].map(str::to_owned).to_vec()]);
        assert_eq!(table, "| a      | b |\n| ---    | --- |\n| größer | c |\n");
    }
}
