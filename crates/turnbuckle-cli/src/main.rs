//! The `turnbuckle` command.
fn main() {}
