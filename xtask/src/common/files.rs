//! Reading and writing files with errors that name them.

use std::{fs, path::Path};

/// Directories with generated files, or with code that does not compile on purpose.
const SKIPPED: &[&str] = &["target", "ui", "results"];

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} is unreadable: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{} is not written: {error}", path.display()))
}

pub(crate) fn create(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{} is not made: {error}", path.display()))
}

/// Every file under `place` whose name ends with `extension`, by its path from the root.
pub(crate) fn read_all(
    root: &Path,
    place: &str,
    extension: &str,
) -> Result<Vec<(String, String)>, String> {
    let mut waiting = vec![root.join(place)];
    let mut files = Vec::new();
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                let skipped = path
                    .file_name()
                    .is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped));
                if !skipped {
                    waiting.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().map(|path| read_relative(root, path)).collect()
}

fn read_relative(root: &Path, path: &Path) -> Result<(String, String), String> {
    let relative = path.strip_prefix(root).unwrap_or(path);
    Ok((relative.to_string_lossy().replace('\\', "/"), read(path)?))
}
