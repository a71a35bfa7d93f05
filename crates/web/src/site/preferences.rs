//! Settings that a reader has without an account.

use axum::body::Bytes;
use axum::http::header::{LOCATION, REFERER, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use http_kit::Problem;
use presentation::Theme;

/// One year.
const MAX_AGE_S: u32 = 31_536_000;

/// `POST /preferences/theme`: stores the theme in a cookie, and returns to the page.
pub async fn set_theme(headers: HeaderMap, body: Bytes) -> Result<Response, Problem> {
    let word = std::str::from_utf8(&body).ok().and_then(|form| form.strip_prefix("theme="));
    let theme = Theme::WORDS.iter().find(|(known, _)| Some(*known) == word);
    let (word, _) = theme.ok_or_else(|| Problem::new(ErrorCode::ValidationFailed))?;
    // Scripts change the theme without a request, so they may read the cookie.
    let cookie = format!("theme={word}; Path=/; Max-Age={MAX_AGE_S}; SameSite=Lax");
    let cookie = HeaderValue::try_from(cookie).map_err(app::AppError::internal)?;
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, back(&headers))]).into_response())
}

/// Returns the path of the page that the form was on. Only the path, so that the answer never leads to
/// another site.
fn back(headers: &HeaderMap) -> HeaderValue {
    let home = HeaderValue::from_static("/");
    let referrer = headers.get(REFERER).and_then(|referrer| referrer.to_str().ok());
    let path = referrer
        .and_then(|url| url.split_once("://"))
        .and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    // `//host` would be another site.
    let own = path.filter(|path| !path.starts_with("//") && !path.contains('\\'));
    own.and_then(|path| HeaderValue::from_str(path).ok()).unwrap_or(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_leads_back_to_a_path_of_this_site() {
        let back = |referrer: &'static str| {
            back(&std::iter::once((REFERER, HeaderValue::from_static(referrer))).collect())
        };
        assert_eq!(back("http://localhost:8080/markets?q=rain"), "/markets?q=rain");
        for foreign in
            ["http://localhost:8080//attacker.test/", "nonsense", "http://localhost:8080", "http://a/\\b"]
        {
            assert_eq!(back(foreign), "/", "{foreign}");
        }
    }
}
