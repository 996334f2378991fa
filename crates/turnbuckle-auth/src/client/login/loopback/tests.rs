//! Over real connections, with a browser that the test plays.

use tokio::sync::mpsc;

use super::*;
use crate::AuthErrorKind;

const URL: &str = "https://auth.example.com/authorize?client_id=me&state=expected&x=1";

fn request(redirect_uri: &str) -> LoginRequest {
    LoginRequest {
        url: URL.to_owned(),
        redirect_uri: redirect_uri.to_owned(),
        issuer: "https://auth.example.com".to_owned(),
    }
}

/// A login that tells which page it would open.
fn login() -> (LoopbackLogin, mpsc::Receiver<String>) {
    let (send, receive) = mpsc::channel(1);
    let login = LoopbackLogin::new().opener(move |url| {
        send.try_send(url.to_owned()).unwrap();
        Ok(())
    });
    (login, receive)
}

async fn ask(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

async fn get(port: u16, target: &str) -> String {
    ask(port, &format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")).await
}

#[tokio::test]
async fn one_answer_is_taken_and_the_listener_closed() {
    let (login, mut opened) = login();
    let waiting = login.redirect_uri(None).await.unwrap();
    let redirect_uri = waiting.redirect_uri().to_owned();
    let port = own_port(&redirect_uri).unwrap();
    let logged_in = tokio::spawn(waiting.log_in(request(&redirect_uri)));
    assert_eq!(opened.recv().await.unwrap(), URL);

    // A connection that says nothing, as browsers open in advance, holds nobody up.
    let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    assert!(get(port, "/favicon.ico").await.starts_with("HTTP/1.1 404"));
    assert!(get(port, "/callback?code=c&state=forged").await.starts_with("HTTP/1.1 400"));
    let posted = format!("POST /callback HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    assert!(ask(port, &posted).await.starts_with("HTTP/1.1 405"));
    assert!(!logged_in.is_finished());

    let page = get(port, "/callback?code=c%20d&state=expected").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("close this page"), "{page}");
    let callback = logged_in.await.unwrap().unwrap();
    assert_eq!(callback, format!("{redirect_uri}?code=c%20d&state=expected"));
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err(), "still listening");
}

#[tokio::test]
async fn a_head_without_end_is_turned_away() {
    let (login, _opened) = login();
    let waiting = login.redirect_uri(None).await.unwrap();
    let redirect_uri = waiting.redirect_uri().to_owned();
    let port = own_port(&redirect_uri).unwrap();
    let logged_in = tokio::spawn(waiting.log_in(request(&redirect_uri)));
    // Exactly as much as is read, so that the connection is not reset before it is answered.
    let answer = ask(port, &"x".repeat(HEAD)).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert!(!logged_in.is_finished());
    get(port, "/callback?error=access_denied&state=expected").await;
    let callback = logged_in.await.unwrap().unwrap();
    assert!(callback.ends_with("?error=access_denied&state=expected"), "{callback}");
}

#[tokio::test]
async fn the_port_of_an_earlier_login_is_tried_first() {
    let (login, _opened) = login();
    let first = login.redirect_uri(None).await.unwrap();
    let earlier = first.redirect_uri().to_owned();
    // It is in use: another is as good.
    let second = login.redirect_uri(Some(&earlier)).await.unwrap();
    assert_ne!(second.redirect_uri(), earlier);
    // Unless the user wants that one.
    let only = login.clone().port(own_port(&earlier).unwrap());
    let error = only.redirect_uri(None).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NotLoggedIn);

    drop(first);
    let third = login.redirect_uri(Some(&earlier)).await.unwrap();
    assert_eq!(third.redirect_uri(), earlier);
    for elsewhere in ["https://app.example.com/callback", "http://127.0.0.1:1/other", "nonsense"] {
        assert_eq!(own_port(elsewhere), None, "{elsewhere}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_has_a_deadline() {
    let (login, _opened) = login();
    let waiting = login.deadline(Duration::from_secs(7)).redirect_uri(None).await.unwrap();
    let redirect_uri = waiting.redirect_uri().to_owned();
    let begun = time::Instant::now();
    let error = waiting.log_in(request(&redirect_uri)).await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NotLoggedIn);
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_login_without_a_deadline_leaves_it_to_whoever_waits() {
    let (login, _opened) = login();
    let waiting = login.redirect_uri(None).await.unwrap();
    let redirect_uri = waiting.redirect_uri().to_owned();
    let day = Duration::from_secs(24 * 60 * 60);
    assert!(time::timeout(day, waiting.log_in(request(&redirect_uri))).await.is_err());
}

#[tokio::test]
async fn a_system_that_gives_no_connection_for_a_while_ends_no_login() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let accept = || async {
        if failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2 {
            return Err(io::Error::other("too many open files"));
        }
        listener.accept().await
    };
    let expected = Arc::new(ExpectedCallback::new(PATH, port, Some("expected".to_owned())));
    let (query, page) =
        tokio::join!(hear(accept, expected), get(port, "/callback?code=c&state=expected"));
    assert_eq!(query.expose(), "code=c&state=expected");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
}

#[tokio::test]
async fn what_can_not_be_opened_ends_the_login() {
    let refusing =
        LoopbackLogin::new().opener(|_| Err(not_logged_in("there is no browser on this machine")));
    let waiting = refusing.redirect_uri(None).await.unwrap();
    let redirect_uri = waiting.redirect_uri().to_owned();
    let error = waiting.log_in(request(&redirect_uri)).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no browser on this machine");

    let (login, mut opened) = login();
    let waiting = login.redirect_uri(None).await.unwrap();
    let mut file = request(waiting.redirect_uri());
    file.url = "file:///etc/passwd".to_owned();
    let error = waiting.log_in(file).await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Forbidden);
    drop(login);
    assert_eq!(opened.recv().await, None, "it was opened");
}
