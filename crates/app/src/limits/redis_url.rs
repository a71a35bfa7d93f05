//! The URL of a Redis server. TLS has the same options as PostgreSQL's URLs.

use std::fs;

use percent_encoding::percent_decode_str;
use redis::io::tcp::TcpSettings;
use redis::{Client, ClientTlsConfig, ConnectionInfo, IntoConnectionInfo, RedisError, TlsCertificates};

use super::BadRedisUrl;

/// The PEM files that a URL names.
#[derive(Debug, Default)]
struct Files {
    roots: Option<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// Returns the client for a URL. Reads the files that the URL names, and connects to nothing.
pub(super) fn client(url: &str, tcp: TcpSettings) -> Result<Client, BadRedisUrl> {
    if url.contains('#') {
        return Err(refused("#insecure is not supported: set sslrootcert to the file of your own authority"));
    }
    let (url, files) = split(url)?;
    let is_tls = url.starts_with("rediss:") || url.starts_with("valkeys:");
    let info = url.as_str().into_connection_info().map_err(bad_url)?;
    let info = ConnectionInfo::set_tcp_settings(info, tcp);
    match files {
        None => Client::open(info).map_err(bad_url),
        Some(_) if !is_tls => Err(refused("certificates require rediss://")),
        Some(files) => Client::build_with_tls(info, files.into_certificates()?)
            .map_err(|_| refused("sslrootcert, sslcert or sslkey does not contain what its name says")),
    }
}

/// Splits a URL into the part for the driver and the files of its TLS options, if it has any.
fn split(url: &str) -> Result<(String, Option<Files>), BadRedisUrl> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut files, mut rest, mut is_set) = (Files::default(), Vec::new(), false);
    for option in query.split('&') {
        match option.split_once('=') {
            // A plaintext URL with this option would look protected.
            Some(("sslmode", _)) => {
                return Err(refused("sslmode is not supported: rediss:// always verifies the server"));
            }
            Some((name @ "sslrootcert", path)) => files.roots = Some(read(name, path)?),
            Some((name @ "sslcert", path)) => files.certificate = Some(read(name, path)?),
            Some((name @ "sslkey", path)) => files.key = Some(read(name, path)?),
            _ => {
                rest.push(option);
                continue;
            }
        }
        is_set = true;
    }
    let rest = rest.join("&");
    let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") };
    Ok((url, is_set.then_some(files)))
}

impl Files {
    fn into_certificates(self) -> Result<TlsCertificates, BadRedisUrl> {
        let client_tls = match (self.certificate, self.key) {
            (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
            (None, None) => None,
            _ => return Err(refused("sslcert and sslkey must be set together")),
        };
        Ok(TlsCertificates { client_tls, root_cert: self.roots })
    }
}

fn read(name: &str, path: &str) -> Result<Vec<u8>, BadRedisUrl> {
    let path = percent_decode_str(path).decode_utf8_lossy();
    fs::read(path.as_ref()).map_err(|e| refused(format!("{name}: {path} cannot be read: {e}")))
}

fn refused(detail: impl Into<String>) -> BadRedisUrl {
    BadRedisUrl(detail.into())
}

// Only the category: the error's text may contain the URL and its password.
fn bad_url(error: RedisError) -> BadRedisUrl {
    refused(error.category())
}
