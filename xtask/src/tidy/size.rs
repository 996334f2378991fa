//! The sizes of files and functions. Test code may be as long as it likes.

use syn::{
    spanned::Spanned,
    visit::{self, Visit},
};

use super::source::{Finding, Source};

const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 90;

/// Finds files and functions that are too long.
pub(crate) fn sizes(source: &Source) -> Vec<Finding> {
    if source.is_test_file() {
        return Vec::new();
    }
    let mut finder = FunctionFinder { source, findings: Vec::new() };
    let lines = source.text.lines().count();
    if lines > FILE_LINES {
        let sentence = format!("the file has {lines} lines, more than {FILE_LINES}");
        finder.findings.push(source.finding(1, sentence));
    }
    finder.visit_file(&source.syntax);
    finder.findings
}

struct FunctionFinder<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl FunctionFinder<'_> {
    fn check(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        let lines = block.span().end().line + 1 - line;
        if lines > FUNCTION_LINES && !self.source.is_test_line(line) {
            let name = &signature.ident;
            let sentence =
                format!("function `{name}` has {lines} lines, more than {FUNCTION_LINES}");
            self.findings.push(self.source.finding(line, sentence));
        }
    }
}

impl<'ast> Visit<'ast> for FunctionFinder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.check(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<Finding> {
        sizes(&Source::parse(path, text).unwrap())
    }

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_has_a_maximum_of_lines() {
        assert_eq!(findings("a/src/b.rs", &"// a line\n".repeat(FILE_LINES)).len(), 0);
        let over = "// a line\n".repeat(FILE_LINES + 1);
        assert_eq!(findings("a/src/b.rs", &over).len(), 1);
        assert_eq!(findings("a/tests/b.rs", &over).len(), 0);
    }

    #[test]
    fn a_function_has_a_maximum_of_lines() {
        assert_eq!(findings("a/src/b.rs", &function_of(FUNCTION_LINES)).len(), 0);
        let over = function_of(FUNCTION_LINES + 1);
        assert_eq!(findings("a/src/b.rs", &over).len(), 1);
        let method = format!("struct A;\nimpl A {{\n{over}}}\n");
        assert_eq!(findings("a/src/b.rs", &method)[0].line, 3);
        let test = format!("#[cfg(test)]\nmod tests {{\n{over}}}\n");
        assert_eq!(findings("a/src/b.rs", &test).len(), 0);
    }
}
