//! The relying party: the domain that passkeys are bound to, and the origin of the pages that use
//! them.

use url::{Host, Url};

/// A relying party with one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    id: String,
    origin: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelyingPartyError {
    #[error("must be a URL with a domain name: passkeys do not work on IP addresses")]
    NoDomain,
    #[error("must be an https URL, or http://localhost")]
    Insecure,
    #[error("must be the host {0} or a parent domain of it")]
    OtherDomain(String),
}

impl RelyingParty {
    /// Returns the relying party of the web application at `app_url`. `id` defaults to its host.
    ///
    /// # Errors
    /// If browsers would not offer passkeys there.
    pub fn new(app_url: &str, id: Option<&str>) -> Result<Self, RelyingPartyError> {
        let url = Url::parse(app_url).map_err(|_| RelyingPartyError::NoDomain)?;
        let Some(Host::Domain(host)) = url.host() else { return Err(RelyingPartyError::NoDomain) };
        let is_local = host == "localhost" || host.ends_with(".localhost");
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(RelyingPartyError::Insecure);
        }
        let id = id.unwrap_or(host);
        // A domain of one label, such as a top-level domain, never has passkeys, except localhost.
        let is_parent = id.contains('.') && host.strip_suffix(id).is_some_and(|rest| rest.ends_with('.'));
        if id != host && (!is_parent || id.starts_with('.')) {
            return Err(RelyingPartyError::OtherDomain(host.to_owned()));
        }
        Ok(Self { id: id.to_owned(), origin: url.origin().ascii_serialization(), host: host.to_owned() })
    }

    /// The relying-party id: a domain.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The origin of the pages, such as `https://foretell.example`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host of the pages, without the port.
    pub fn host(&self) -> &str {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_host_or_a_parent_domain() {
        let party = |id| RelyingParty::new("https://app.foretell.example:8443/x", id);
        let whole = party(None).unwrap();
        assert_eq!((whole.id(), whole.host()), ("app.foretell.example", "app.foretell.example"));
        assert_eq!(whole.origin(), "https://app.foretell.example:8443");
        assert_eq!(party(Some("foretell.example")).unwrap().id(), "foretell.example");
        for other in ["example", "foretell.exampl", ".foretell.example", "tell.example", "other.example", ""]
        {
            let refused = party(Some(other));
            assert_eq!(
                refused,
                Err(RelyingPartyError::OtherDomain("app.foretell.example".into())),
                "{other}"
            );
        }
    }

    #[test]
    fn passkeys_need_https_or_localhost() {
        assert_eq!(
            RelyingParty::new("http://localhost:8080", None).unwrap().origin(),
            "http://localhost:8080"
        );
        assert_eq!(RelyingParty::new("http://foretell.example", None), Err(RelyingPartyError::Insecure));
        for address in ["http://127.0.0.1:8080", "https://[::1]", "foretell.example", ""] {
            assert_eq!(RelyingParty::new(address, None), Err(RelyingPartyError::NoDomain), "{address}");
        }
    }
}
