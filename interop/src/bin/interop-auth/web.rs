//! Owns: what a browser does: pages over TLS, redirects, cookies. Does not own: what is asked.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};
use url::{Url, form_urlencoded};

use crate::authority;

/// No login has more of them.
const MOST_REDIRECTS: usize = 10;

/// Asks over connections of its own.
#[derive(Clone)]
pub(crate) struct Web(Arc<TlsConnector>);

/// A page, or where to look for it.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Web {
    /// Trusts whom the authority in this folder vouches for.
    pub(crate) fn new(folder: &Path) -> Result<Web, String> {
        let connector = authority::connector(folder).map_err(|error| error.to_string())?;
        Ok(Web(Arc::new(connector)))
    }

    /// Follows redirects, as a browser would, until the page is on no secure address: that is where
    /// a login ends.
    pub(crate) async fn log_in(&self, url: &str) -> Result<String, String> {
        let mut url = Url::parse(url).map_err(|error| error.to_string())?;
        let mut cookies = BTreeMap::new();
        for _ in 0..MOST_REDIRECTS {
            let all: Vec<String> =
                cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let cookie = [("cookie", all.join("; "))];
            let answer = self.ask("GET", &url, &cookie, "").await?;
            for set in answer.all("set-cookie") {
                let pair = set.split(';').next().unwrap_or_default();
                if let Some((name, value)) = pair.split_once('=') {
                    cookies.insert(name.to_owned(), value.to_owned());
                }
            }
            let Some(next) = answer.all("location").next() else {
                return Err(format!("{} answers {}: {}", url.path(), answer.status, answer.body));
            };
            url = url.join(next).map_err(|error| error.to_string())?;
            if url.scheme() != "https" {
                return Ok(url.into());
            }
        }
        Err("the login has too many redirects".to_owned())
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Answer, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        self.ask("GET", &url, &[], "").await
    }

    pub(crate) async fn post(&self, url: &str, form: &[(&str, &str)]) -> Result<Answer, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let kind = [("content-type", "application/x-www-form-urlencoded".to_owned())];
        self.ask("POST", &url, &kind, &body).await
    }

    /// Asks for the page that a browser asks for when it is sent back to a program of its user.
    pub(crate) async fn call_back(&self, url: &str) -> Result<Answer, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let stream = connect(&url).await?;
        exchange(stream, "GET", &url, &[], "").await
    }

    async fn ask(
        &self,
        method: &str,
        url: &Url,
        headers: &[(&str, String)],
        body: &str,
    ) -> Result<Answer, String> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        let stream = self.0.connect(name, connect(url).await?).await;
        exchange(stream.map_err(|error| error.to_string())?, method, url, headers, body).await
    }
}

async fn connect(url: &Url) -> Result<TcpStream, String> {
    let addresses = url.socket_addrs(|| None).map_err(|error| error.to_string())?;
    TcpStream::connect(addresses.as_slice()).await.map_err(|error| error.to_string())
}

/// One request on a connection, and its answer.
async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    url: &Url,
    headers: &[(&str, String)],
    body: &str,
) -> Result<Answer, String> {
    let (path, host) = (
        &url[url::Position::BeforePath..],
        &url[url::Position::BeforeHost..url::Position::AfterPort],
    );
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    // Whoever closes without a word has said everything all the same: lengths are checked below.
    let _ = stream.read_to_end(&mut answer).await;
    Answer::read(&String::from_utf8_lossy(&answer))
}

impl Answer {
    fn read(text: &str) -> Result<Answer, String> {
        let whole = || format!("this is no answer: {text:?}");
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(whole)?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok()).ok_or_else(whole)?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let answer = Answer { status, headers, body: body.to_owned() };
        let length = answer.all("content-length").next().and_then(|it| it.parse::<usize>().ok());
        if length.is_some_and(|length| length != body.len()) {
            return Err(whole());
        }
        Ok(answer)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.headers.iter().filter(move |(found, _)| found == name);
        named.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Result<Value, String> {
        serde_json::from_str(&self.body).map_err(|error| format!("{error}: {}", self.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        let text = "HTTP/1.1 303 See Other\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\n{}";
        let answer = Answer::read(text).unwrap();
        assert_eq!((answer.status, answer.all("set-cookie").count()), (303, 2));
        assert_eq!(answer.json(), Ok(serde_json::json!({})));
        assert!(Answer::read(&text[..text.len() - 1]).is_err());
        assert!(Answer::read("").is_err());
    }
}
