//! [`Server::directory`]: the files of a directory as resources.

use std::{
    io::ErrorKind,
    panic::Location,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::sync::Semaphore;
use turnbuckle_types::{BlobResourceContents, Resource, ResourceContents, TextResourceContents};

use crate::server::{
    Arguments, Ctx, FromCall, NotFound, Server, TemplateDef, ToolError, blocking_template,
    handler::{extract::Invocation, reply::Failure},
    uri::{
        SafePath,
        directory::{Contents, Extent, File, LONGEST_FILE, list, read},
    },
};

impl Server {
    /// Serves the files below a directory as resources: `guide/start.md` is
    /// `file:///docs/guide/start.md` if `base` is `file:///docs`.
    ///
    /// Files are listed and read as they are at that moment. Only regular files within the
    /// directory exist: hidden files, and targets of paths or symbolic links outside of it, do not. A
    /// file may have up to 16 MiB.
    ///
    /// ```no_run
    /// use turnbuckle::Server;
    /// let server = Server::new("docs", "1.0").directory("file:///docs", "./docs");
    /// # let _ = server;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn directory(self, base: &str, path: impl AsRef<Path>) -> Server {
        let template = directory(base, path.as_ref()).placed(Location::caller());
        self.template(template)
    }
}

/// The path in the URI of a file: the only variable of the template.
struct PathVariable(String);

impl FromCall for PathVariable {
    async fn from_call(call: &Invocation) -> Result<PathVariable, Failure> {
        let Arguments::Text(variables) = call.arguments() else { return Err(NotFound.into()) };
        let path = variables.iter().flat_map(|(_, value)| value.iter()).next();
        Ok(PathVariable(path.ok_or(NotFound)?.to_owned()))
    }
}

fn directory(base: &str, path: &Path) -> TemplateDef {
    let prefix = prefix(base);
    let base: Arc<str> = prefix.as_str().into();
    // The program may change its working directory later.
    let root: Arc<Path> = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path)).into();
    let (listed, below) = (root.clone(), base.clone());
    let walks = Arc::new(Semaphore::new(1));
    let list = move |ctx: Ctx| {
        let (root, base, walks) = (listed.clone(), below.clone(), walks.clone());
        walked(ctx, walks, move || files(&root, &base))
    };
    let is_there = root.is_dir();
    let read = move |PathVariable(path): PathVariable| contents(&root, path);
    let mut template = blocking_template(format!("{prefix}{{+path}}"), read).list_to_the_end(list);
    if !is_there {
        let problem = format!("`{}` is not a directory", path.display());
        template.registration.problems.push(problem);
    }
    let name = prefix.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&prefix);
    template.name(name.trim_end_matches(':'))
}

/// Returns the prefix of the URIs of all files: the base, with one `/` at its end. The slashes of
/// `://` and `:///` stay.
fn prefix(base: &str) -> String {
    let root = base.find("://").map_or(0, |at| at + "://".len());
    let (root, rest) = base.split_at(root);
    let rest = match rest.strip_prefix('/') {
        Some(rest) => format!("/{}", rest.trim_matches('/')),
        None => rest.trim_end_matches('/').to_owned(),
    };
    let prefix = format!("{root}{rest}");
    if prefix.ends_with('/') { prefix } else { prefix + "/" }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a walk on a blocking thread, one at a time, however many requests wait or are cancelled.
async fn walked(
    ctx: Ctx,
    walks: Arc<Semaphore>,
    walk: impl FnOnce() -> Result<Vec<Resource>, AnyError> + Send + 'static,
) -> Result<Vec<Resource>, AnyError> {
    let turn = tokio::select! {
        biased;
        () = ctx.cancelled() => return Ok(Vec::new()),
        turn = walks.acquire_owned() => turn?,
    };
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        walk()
    })
    .await?
}

/// Returns every file as a resource.
fn files(root: &Path, base: &str) -> Result<Vec<Resource>, AnyError> {
    let listing = list(root)?;
    if listing.extent == Extent::Part {
        tracing::warn!(directory = %root.display(), "too many files: not all are listed");
    }
    let resource = |file: File| {
        let name = file.path.segments().last().unwrap_or_default();
        let mut resource = Resource::new(format!("{base}{}", escaped(file.path.as_str())), name);
        resource.mime_type = file.mime_type.map(str::to_owned);
        resource.size = Some(file.size);
        resource
    };
    Ok(listing.files.into_iter().map(resource).collect())
}

/// Reads one file. A path that is not safe is not found.
fn contents(root: &Path, path: String) -> Result<ResourceContents, AnyError> {
    let path = SafePath::new(path).map_err(|_| NotFound)?;
    let contents = read(root, &path, LONGEST_FILE).map_err(|error| -> AnyError {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
                NotFound.into()
            }
            ErrorKind::FileTooLarge => ToolError::new(error.to_string()).into(),
            _ => error.into(),
        }
    })?;
    // Without a URI, that of the request is meant.
    Ok(match contents {
        Contents::Text { text, mime_type } => {
            let mut contents = TextResourceContents::new("", text);
            contents.mime_type = Some(mime_type.to_owned());
            contents.into()
        }
        Contents::Bytes { bytes, mime_type } => {
            let mut contents = BlobResourceContents::new("", STANDARD.encode(bytes));
            contents.mime_type = Some(mime_type.to_owned());
            contents.into()
        }
    })
}

/// Escapes all characters but `/` and the unreserved ones of RFC 3986 §2.3.
fn escaped(path: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_ends_with_one_slash_and_keeps_those_that_mean_something() {
        for (base, expected) in [
            ("file:///docs", "file:///docs/"),
            ("file:///docs//", "file:///docs/"),
            ("file:///", "file:///"),
            ("file:////", "file:///"),
            ("docs://", "docs://"),
            ("docs://team", "docs://team/"),
            ("docs://team/", "docs://team/"),
            ("urn:docs", "urn:docs/"),
        ] {
            assert_eq!(prefix(base), expected, "{base}");
            let template = directory(base, Path::new("."));
            assert_eq!(template.uri_template(), format!("{expected}{{+path}}"));
            assert!(
                template.registration.problems.is_empty(),
                "{:?}",
                template.registration.problems
            );
        }
        assert_eq!(directory("file:///", Path::new(".")).spec.name, "file");
    }

    #[cfg(all(feature = "http", feature = "client"))]
    #[tokio::test]
    async fn walks_that_nobody_waits_for_are_counted_and_others_wait_for_them() {
        use std::sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        };

        use crate::{
            rpc::Permit,
            server::{Arguments, handler::run::HandlerRun, methods::HandlerRequest},
        };

        let (started, mut starts) = tokio::sync::mpsc::channel(8);
        let (go_on, gate) = mpsc::channel::<()>();
        let (gate, walks) = (Arc::new(Mutex::new(gate)), Arc::new(Semaphore::new(1)));
        let family = crate::template("x://{id}", async || "").list_to_the_end(move |ctx: Ctx| {
            let (started, gate) = (started.clone(), gate.clone());
            walked(ctx, walks.clone(), move || {
                started.blocking_send(())?;
                gate.lock().unwrap().recv()?;
                Ok(vec![Resource::new("x://1", "1")])
            })
        });
        let app = Server::new("s", "1").app().unwrap();
        let in_flight: Arc<AtomicUsize> = Arc::default();
        let lister = family.list.unwrap();
        let list = || {
            let permit = Permit::take(&in_flight, 9).unwrap();
            let (ctx, params) = (Ctx::unheard(), Default::default());
            let visit = HandlerRequest { app: app.clone(), ctx: ctx.clone(), params, permit };
            let (lister, call) = (lister.clone(), visit.call(Arguments::Text(Vec::new())));
            (ctx, tokio::spawn(async move { HandlerRun::part(&lister, call, visit.permit).await }))
        };
        let (_, given_up) = list();
        starts.recv().await.unwrap();
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        let (cancelled, waiting) = list();
        tokio::task::yield_now().await;
        cancelled.fire();
        assert!(waiting.await.unwrap().unwrap().is_empty(), "it never walked");
        let (_, waiting) = list();
        tokio::task::yield_now().await;
        assert!(starts.try_recv().is_err(), "one walk at a time");
        assert_eq!(in_flight.load(Ordering::Relaxed), 2);
        go_on.send(()).unwrap();
        starts.recv().await.unwrap();
        go_on.send(()).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
    }
}
