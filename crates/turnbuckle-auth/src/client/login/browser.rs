//! Opening a browser.

use webbrowser::{Browser, BrowserOptions};

use super::not_logged_in;
use crate::{AuthError, guard::parse};

/// Opens the user's browser, by starting it: no shell sees the address. Only `http` and `https` are
/// opened, and no address with a user or a password in it. Blocks while the browser starts.
///
/// ```
/// use turnbuckle_auth::{open_in_browser, AuthErrorKind};
/// let refused = open_in_browser("file:///etc/passwd").unwrap_err();
/// assert_eq!(refused.kind(), AuthErrorKind::Forbidden);
/// ```
pub fn open_in_browser(url: &str) -> Result<(), AuthError> {
    let url = parse(url)?;
    let mut options = BrowserOptions::new();
    // What a browser prints is no business of a program whose stdout may be a protocol.
    options.with_suppress_output(true);
    // As it was read, not as it was written: what the browser sees is what was checked.
    webbrowser::open_browser_with_options(Browser::Default, url.as_str(), &options)
        .map_err(|error| not_logged_in(format!("no browser could be opened: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AuthErrorKind;

    #[test]
    fn only_pages_are_opened() {
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-msdt:/id",
            "-version",
            "--help",
            "https://user:pass@a.example/",
            "$(touch /tmp/x)",
            "",
        ] {
            let error = open_in_browser(url).unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{url}");
        }
    }
}
