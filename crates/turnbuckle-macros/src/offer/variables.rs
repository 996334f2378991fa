//! Owns: whether the arguments of a resource's function are the variables of its URI.
//! Does not own: the reading of either.

use syn::{Error, ext::IdentExt};

use super::parse::{Function, Role};
use crate::{
    errors::Errors,
    kind::Kind,
    options::Options,
    types::{Extractor, show},
    uri::{Presence, variables},
};

/// Reports arguments that no URI gives, and variables that nothing takes.
pub(super) fn check(options: &Options, function: &Function, errors: &mut Errors) {
    let Some(uri) = &options.uri else { return };
    let Some(variables) = errors.take(variables(uri)) else { return };
    let text = uri.value();
    let mut takes_all = false;
    for argument in &function.arguments {
        match &argument.role {
            Role::Plain(plain) => {
                let Some(name) = plain.wire_name() else {
                    takes_all = true;
                    continue;
                };
                if variables.iter().any(|variable| variable.name == name) {
                    continue;
                }
                let message = match options.kind {
                    Kind::Template => format!(
                        "`{text}` has no variable `{name}`: write `{{{name}}}` into it, or call \
                         the argument {}",
                        listed(variables.iter().map(|variable| &*variable.name))
                    ),
                    _ => format!(
                        "`{text}` has no variables, so that nothing gives `{}`: write \
                         `{}/{{{name}}}`, or take shared state as `State<S>`",
                        plain.name.unraw(),
                        text.trim_end_matches('/')
                    ),
                };
                errors.push(Error::new_spanned(&plain.name, message));
            }
            Role::Extractor(Extractor::Args) if options.kind == Kind::Resource => {
                let message = format!(
                    "`{}` is made of the variables of a URI, and `{text}` has none: write `{}/{{name}}`",
                    show(&argument.ty),
                    text.trim_end_matches('/')
                );
                errors.push(Error::new_spanned(&argument.ty, message));
            }
            Role::Extractor(Extractor::Args | Extractor::RawArgs | Extractor::Custom) => {
                takes_all = true;
            }
            Role::Extractor(_) => {}
        }
    }
    if takes_all {
        return;
    }
    let taken: Vec<String> = function.plain().filter_map(|plain| plain.wire_name()).collect();
    for variable in &variables {
        let name = &variable.name;
        if variable.presence == Presence::Always && !taken.contains(name) {
            let message = format!(
                "`{{{name}}}` of `{text}` is taken by no argument: add `{name}: String` to `{}`",
                function.ident.unraw()
            );
            errors.push(Error::new_spanned(uri, message));
        }
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}
