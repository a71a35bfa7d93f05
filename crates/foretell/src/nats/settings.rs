//! The settings of the event sink.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

pub const DEFAULT_STREAM: &str = "FORETELL_EVENTS";
pub const DEFAULT_SUBJECT: &str = "foretell.events";

/// A setting in a wrong form. The text does not contain its value, which may be a
/// secret.
#[derive(Debug, thiserror::Error)]
pub enum NatsSettingsError {
    #[error("nats-url must be URLs such as nats://127.0.0.1:4222, or tls:// for servers with TLS")]
    Url,
    #[error("nats-url must have the same user in all URLs")]
    Users,
    #[error("nats-url must not name a user if nats-credentials is set")]
    TwoUsers,
    #[error("nats-stream must be a name without spaces and . * > / \\")]
    Stream,
    #[error(
        "nats-subject must be words with dots between them, without spaces, * and >, such as {DEFAULT_SUBJECT}"
    )]
    Subject,
    #[error("{0} requires nats-url")]
    WithoutUrl(&'static str),
}

/// The settings as an operator gives them.
#[derive(Debug, Default)]
pub struct GivenNatsSettings {
    pub urls: Option<Vec<SecretString>>,
    pub stream: Option<String>,
    pub subject: Option<String>,
    pub credentials: Option<PathBuf>,
    pub ca: Option<PathBuf>,
}

/// The user of the URLs.
#[derive(Debug, Clone)]
pub enum UrlUser {
    Password { user: String, password: SecretString },
    Token(SecretString),
}

/// The resolved settings of the event sink.
#[derive(Debug, Clone)]
pub struct NatsSettings {
    /// URLs without users and passwords.
    pub servers: Vec<String>,
    pub user: Option<UrlUser>,
    pub stream: String,
    /// The subjects' beginning. The user's id follows.
    pub subject: String,
    /// A file with a user's JWT and seed. It is read for each connection.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates of authorities, instead of those of this machine.
    pub ca: Option<PathBuf>,
}

impl NatsSettings {
    /// Returns the settings, or `None` if no server is set.
    ///
    /// # Errors
    /// If a setting is invalid, or has no effect without a server.
    pub fn resolve(given: GivenNatsSettings) -> Result<Option<Self>, NatsSettingsError> {
        let GivenNatsSettings { urls, stream, subject, credentials, ca } = given;
        let Some(urls) = urls else {
            let others = [
                ("nats-stream", stream.is_some()),
                ("nats-subject", subject.is_some()),
                ("nats-credentials", credentials.is_some()),
                ("nats-ca", ca.is_some()),
            ];
            let useless = others.into_iter().find(|(_, is_set)| *is_set);
            return useless.map_or(Ok(None), |(name, _)| Err(NatsSettingsError::WithoutUrl(name)));
        };
        let (servers, user) = parse_urls(&urls)?;
        if user.is_some() && credentials.is_some() {
            return Err(NatsSettingsError::TwoUsers);
        }
        let stream = stream.unwrap_or_else(|| DEFAULT_STREAM.to_owned());
        let is_name = |c: char| !c.is_whitespace() && !c.is_control() && !".*>/\\".contains(c);
        if stream.is_empty() || !stream.chars().all(is_name) {
            return Err(NatsSettingsError::Stream);
        }
        let subject = subject.unwrap_or_else(|| DEFAULT_SUBJECT.to_owned());
        // Subjects of the server itself begin with a dollar.
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic() && !"*>".contains(c));
        if subject.starts_with(['$', '_']) || !subject.split('.').all(is_word) {
            return Err(NatsSettingsError::Subject);
        }
        Ok(Some(Self { servers, user, stream, subject, credentials, ca }))
    }

    /// Returns whether the connection to every server is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.servers.iter().all(|server| server.starts_with("tls://"))
    }

    /// Returns the servers as logs and checks name them.
    pub fn server_names(&self) -> String {
        self.servers.join(", ")
    }
}

fn parse_urls(urls: &[SecretString]) -> Result<(Vec<String>, Option<UrlUser>), NatsSettingsError> {
    let texts = urls.iter().map(|url| url.expose_secret().trim()).filter(|text| !text.is_empty());
    let mut servers = Vec::new();
    let mut found: Option<(String, Option<String>)> = None;
    for text in texts {
        let mut url = Url::parse(text).map_err(|_| NatsSettingsError::Url)?;
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "nats" | "tls") || url.host_str().is_none_or(str::is_empty) || !is_bare {
            return Err(NatsSettingsError::Url);
        }
        let user = (url.username().to_owned(), url.password().map(str::to_owned));
        if user != (String::new(), None) && found.get_or_insert_with(|| user.clone()) != &user {
            return Err(NatsSettingsError::Users);
        }
        url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| NatsSettingsError::Url)?;
        servers.push(url.as_str().trim_end_matches('/').to_owned());
    }
    if servers.is_empty() {
        return Err(NatsSettingsError::Url);
    }
    let decoded = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .map(std::borrow::Cow::into_owned)
            .map_err(|_| NatsSettingsError::Url)
    };
    let user = match found {
        None => None,
        Some((user, Some(password))) => {
            Some(UrlUser::Password { user: decoded(&user)?, password: decoded(&password)?.into() })
        }
        Some((token, None)) => Some(UrlUser::Token(decoded(&token)?.into())),
    };
    Ok((servers, user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(urls: &[&str]) -> Result<NatsSettings, String> {
        let urls = Some(urls.iter().map(|url| SecretString::from(*url)).collect());
        let resolved = NatsSettings::resolve(GivenNatsSettings { urls, ..GivenNatsSettings::default() });
        resolved.map(Option::unwrap).map_err(|error| error.to_string())
    }

    #[test]
    fn the_user_of_a_url_is_no_part_of_the_server() {
        let settings = resolve(&["nats://ada:p%40ss@one:4222", "tls://ada:p%40ss@two"]).unwrap();
        assert_eq!(settings.servers, ["nats://one:4222", "tls://two"]);
        let Some(UrlUser::Password { user, password }) = &settings.user else { panic!("{settings:?}") };
        assert_eq!((user.as_str(), password.expose_secret()), ("ada", "p@ss"));
        assert!(!format!("{settings:?}").contains("p@ss"));
        let settings = resolve(&["nats://t0ken@one"]).unwrap();
        assert!(matches!(&settings.user, Some(UrlUser::Token(token)) if token.expose_secret() == "t0ken"));
        assert!(!settings.is_encrypted() && resolve(&["tls://one"]).unwrap().is_encrypted());
        assert_eq!((settings.stream.as_str(), settings.subject.as_str()), (DEFAULT_STREAM, DEFAULT_SUBJECT));
    }

    #[test]
    fn an_error_does_not_show_the_url() {
        for urls in [
            &["hunter2"][..],
            &["http://hunter2@one"],
            &["nats://"],
            &["nats://one/hunter2"],
            &[""],
            &["nats://a:hunter2@one", "nats://b:hunter2@two"],
        ] {
            let error = resolve(urls).unwrap_err();
            assert!(error.starts_with("nats-url must") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn names_that_nats_forbids_are_rejected() {
        let with = |stream: &str, subject: &str| {
            let urls = Some(vec!["nats://one".into()]);
            let (stream, subject) = (Some(stream.to_owned()), Some(subject.to_owned()));
            NatsSettings::resolve(GivenNatsSettings { urls, stream, subject, ..GivenNatsSettings::default() })
        };
        assert!(with("EVENTS-1", "acme.foretell_1").is_ok());
        for stream in ["", "a b", "a.b", "a*", ">", "a/b"] {
            assert!(with(stream, "a").is_err(), "{stream}");
        }
        for subject in ["", "a..b", ".a", "a.", "a b", "a.*", "a.>", "$JS.a", "_INBOX"] {
            assert!(with("A", subject).is_err(), "{subject}");
        }
    }

    #[test]
    fn without_a_server_the_other_settings_are_rejected() {
        assert!(NatsSettings::resolve(GivenNatsSettings::default()).unwrap().is_none());
        let given = GivenNatsSettings { stream: Some("A".to_owned()), ..GivenNatsSettings::default() };
        let error = NatsSettings::resolve(given).unwrap_err().to_string();
        assert_eq!(error, "nats-stream requires nats-url");
        let both = GivenNatsSettings {
            urls: Some(vec!["nats://t@one".into()]),
            credentials: Some("c".into()),
            ..GivenNatsSettings::default()
        };
        assert!(NatsSettings::resolve(both).is_err());
    }
}
