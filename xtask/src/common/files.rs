//! Owns: reading and writing files with errors that name them. Does not own: which files.

use std::fs;
use std::path::Path;

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} is unreadable: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{} is not written: {error}", path.display()))
}

pub(crate) fn create(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{} is not made: {error}", path.display()))
}
