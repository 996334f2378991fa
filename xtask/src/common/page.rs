//! A page of which a part is generated.

/// The page with `text` between the two marks, in place of what is there; none if they are missing.
pub(crate) fn replaced(page: &str, begin: &str, end: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n\n{text}\n{end}{after}"))
}

/// Lines of cells as a table of Markdown that is also readable as it is: every column but the last
/// is padded, and a line of dashes follows the first.
pub(crate) fn table(lines: &[Vec<String>]) -> String {
    let Some(head) = lines.first() else { return String::new() };
    let dashes = vec!["---".to_owned(); head.len()];
    let width = |column: usize| {
        lines.iter().chain([&dashes]).map(|line| line[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len() - 1).map(width).collect();
    let mut text = String::new();
    for line in [head, &dashes].into_iter().chain(&lines[1..]) {
        for (column, cell) in line.iter().enumerate() {
            let width = widths.get(column).copied().unwrap_or(0);
            text.push_str(&format!("| {cell:width$} "));
        }
        text.push_str("|\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_keeps_what_is_around_the_part() {
        let page = "# Page\n<a>\nold\n<b>\nend\n";
        let new = replaced(page, "<a>", "<b>", "new\n").unwrap();
        assert_eq!(new, "# Page\n<a>\n\nnew\n\n<b>\nend\n");
        assert_eq!(replaced(&new, "<a>", "<b>", "new\n"), Some(new.clone()));
        assert_eq!(replaced("# Page", "<a>", "<b>", "new"), None);
    }

    #[test]
    fn a_table_pads_every_column_but_the_last() {
        let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let table = table(&[line(["a", "b"]), line(["größer", "c"])]);
        assert_eq!(table, "| a      | b |\n| ---    | --- |\n| größer | c |\n");
    }
}
