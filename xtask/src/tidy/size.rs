//! Owns: how long a file and a function may be, and who is excused.
//! Does not own: how to cut; the reader of a finding decides that.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::source::{Finding, Source};

const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 90;

/// A file, or a function in it, that is longer than the rule allows and better that way.
#[derive(Debug)]
struct Exception {
    path: &'static str,
    /// `None` excuses the file itself.
    function: Option<&'static str>,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

/// Finds files and functions that outgrew their room. Tests may be as long as they like.
pub(crate) fn sizes(source: &Source) -> Vec<Finding> {
    measure(source, EXCEPTIONS)
}

/// Finds exceptions that no longer excuse anything, or give no reason.
pub(crate) fn stale_exceptions(sources: &[Source]) -> Vec<Finding> {
    stale(sources, EXCEPTIONS)
}

fn measure(source: &Source, exceptions: &[Exception]) -> Vec<Finding> {
    oversize(source)
        .into_iter()
        .filter(|large| !exceptions.iter().any(|exception| excuses(exception, source, large)))
        .map(|large| source.finding(large.line, large.sentence()))
        .collect()
}

fn stale(sources: &[Source], exceptions: &[Exception]) -> Vec<Finding> {
    let used = |exception: &Exception| {
        sources
            .iter()
            .any(|source| oversize(source).iter().any(|large| excuses(exception, source, large)))
    };
    exceptions
        .iter()
        .filter(|exception| exception.reason.is_empty() || !used(exception))
        .map(|exception| Finding {
            path: exception.path.to_owned(),
            line: 1,
            sentence: "its exception from the size rule is not needed or has no reason".to_owned(),
        })
        .collect()
}

/// Something longer than allowed.
struct Large {
    function: Option<String>,
    line: usize,
    lines: usize,
}

impl Large {
    fn sentence(&self) -> String {
        match &self.function {
            Some(name) => {
                format!("function `{name}` has {} lines, more than {FUNCTION_LINES}", self.lines)
            }
            None => format!("the file has {} lines, more than {FILE_LINES}", self.lines),
        }
    }
}

fn excuses(exception: &Exception, source: &Source, large: &Large) -> bool {
    exception.path == source.path && exception.function == large.function.as_deref()
}

fn oversize(source: &Source) -> Vec<Large> {
    let mut found = Vec::new();
    if source.is_test_file() {
        return found;
    }
    let lines = source.text.lines().count();
    if lines > FILE_LINES {
        found.push(Large { function: None, line: 1, lines });
    }
    let mut finder = FunctionFinder::default();
    finder.visit_file(&source.syntax);
    found.extend(
        finder
            .found
            .into_iter()
            .filter(|function| function.lines > FUNCTION_LINES)
            .filter(|function| !source.is_test_line(function.line)),
    );
    found
}

#[derive(Default)]
struct FunctionFinder {
    found: Vec<Large>,
}

impl FunctionFinder {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        let lines = block.span().end().line + 1 - line;
        self.found.push(Large { function: Some(signature.ident.to_string()), line, lines });
    }
}

impl<'ast> Visit<'ast> for FunctionFinder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_may_have_as_many_lines_as_the_rule_says_and_no_more() {
        let fits = "// a line\n".repeat(FILE_LINES);
        assert_eq!(measure(&source("a/src/b.rs", &fits), &[]).len(), 0);
        let over = "// a line\n".repeat(FILE_LINES + 1);
        assert_eq!(measure(&source("a/src/b.rs", &over), &[]).len(), 1);
        assert_eq!(measure(&source("a/tests/b.rs", &over), &[]).len(), 0);
    }

    #[test]
    fn a_function_may_have_as_many_lines_as_the_rule_says_and_no_more() {
        let fits = function_of(FUNCTION_LINES);
        assert_eq!(measure(&source("a/src/b.rs", &fits), &[]).len(), 0);
        let over = function_of(FUNCTION_LINES + 1);
        assert_eq!(measure(&source("a/src/b.rs", &over), &[]).len(), 1);
        let method = format!("struct A;\nimpl A {{\n{over}}}\n");
        assert_eq!(measure(&source("a/src/b.rs", &method), &[])[0].line, 3);
        let test = format!("#[cfg(test)]\nmod tests {{\n{over}}}\n");
        assert_eq!(measure(&source("a/src/b.rs", &test), &[]).len(), 0);
    }

    #[test]
    fn an_exception_excuses_one_function_and_must_be_needed() {
        const EXCUSED: &[Exception] =
            &[Exception { path: "a/src/b.rs", function: Some("long"), reason: "one table" }];
        let over = source("a/src/b.rs", &function_of(FUNCTION_LINES + 1));
        assert_eq!(measure(&over, EXCUSED).len(), 0);
        assert_eq!(stale(&[over], EXCUSED).len(), 0);
        let fits = source("a/src/b.rs", &function_of(3));
        assert_eq!(stale(&[fits], EXCUSED).len(), 1);
    }
}
