//! The bodies of requests: the fields of forms, and the JSON of the site's own scripts. The bytes in
//! JSON are base64url without padding.

use app::AppError;
use axum::extract::{FromRef, FromRequest, Request};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::field_error::segment;
use domain::text::{OutsideText, decode_form_component};
use http_kit::{Problem, Shared, check_texts, read_body};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

const NOT_TEXT: &str = "must be percent-encoded UTF-8 without NUL characters";

/// The fields of a form, in the order in which the browser sent them.
#[derive(Debug)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Reads the fields of an encoded form.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` at the field whose value is no [`OutsideText`]. Browsers send no such
    /// form.
    pub fn read(encoded: &[u8]) -> Result<Self, AppError> {
        let encoded = std::str::from_utf8(encoded)
            .map_err(|_| AppError::field("", "must be a percent-encoded form"))?;
        let pairs = encoded.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |encoded| decode_form_component(encoded).map(OutsideText::into_string);
            let name = text(name).ok_or_else(|| AppError::field("", NOT_TEXT))?;
            let value = text(value);
            let value = value.ok_or_else(|| AppError::field(&format!("/{}", segment(&name)), NOT_TEXT))?;
            Ok((name, value))
        });
        pairs.collect::<Result<_, AppError>>().map(Self)
    }

    /// Returns the value of a field, or an empty text if it is missing. If it was sent more than once,
    /// the first one counts.
    pub fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// Returns the values of a field that may be sent more than once, such as checked boxes.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<S: Sync> FromRequest<S> for FormFields
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Ok(Self::read(&read_body(&Shared::from_ref(state), request).await?)?)
    }
}

/// A body that was read as a `T`.
#[derive(Debug)]
pub struct ScriptBody<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for ScriptBody<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let raw = read_body(&Shared::from_ref(state), request).await?;
        // Derived types don't look for NUL in their texts.
        check_texts(&raw)?;
        let malformed =
            |error: serde_json::Error| AppError::field("", "must be the documented JSON").caused_by(error);
        Ok(Self(serde_json::from_slice(&raw).map_err(malformed)?))
    }
}

/// Bytes in base64url.
#[derive(Debug, Clone, Default)]
pub struct Base64Url(pub Vec<u8>);

impl<'de> Deserialize<'de> for Base64Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_URL_SAFE_NO_PAD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}
