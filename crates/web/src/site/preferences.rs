//! Settings of a reader: those of the browser, which need no account, and the name on the leaderboard.

use app::people;
use askama::Template;
use axum::extract::State;
use axum::http::header::{LOCATION, REFERER, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use domain::ErrorCode;
use http_kit::{Problem, Shared, cookie};
use presentation::Theme;

use super::form_body::FormFields;
use super::session::{Member, see};
use super::shell::{Reader, Section, Shell, answer, render};
use super::slippage::{SLIPPAGE_COOKIE, SLIPPAGES};

const PATH: &str = "/settings/preferences";
/// One year.
const MAX_AGE_S: u32 = 31_536_000;
const SHORTCUTS_COOKIE: &str = "shortcuts";

#[derive(Debug, Template)]
#[template(path = "site/preferences.html")]
struct PreferencesPage {
    shell: Shell,
    slippages: [(u16, &'static str); 5],
    slippage: u16,
    has_shortcuts: bool,
    /// The name on the leaderboard, if the reader has an account.
    public_name: Option<String>,
    /// What is wrong with the name that was sent.
    error: Option<String>,
}

/// `GET /settings/preferences`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let public_name = match &reader.person {
        Some(person) => Some(people::find_public_name(&app.ctx, person).await?.unwrap_or_default()),
        None => None,
    };
    Ok(answer(render(&PreferencesPage::new(&reader, &headers, public_name))?))
}

impl PreferencesPage {
    fn new(reader: &Reader, headers: &HeaderMap, public_name: Option<String>) -> Self {
        Self {
            shell: Shell::new(reader, Section::None, "Preferences"),
            slippages: SLIPPAGES,
            slippage: reader.slippage_bps,
            has_shortcuts: cookie(headers, SHORTCUTS_COOKIE) != Some("off"),
            public_name,
            error: None,
        }
    }
}

/// `POST /settings/preferences`: stores the settings of the browser in cookies.
pub async fn set_preferences(form: FormFields) -> Result<Response, Problem> {
    let slippage = SLIPPAGES.iter().find(|(bps, _)| form.get("slippage") == bps.to_string());
    let (slippage, _) = slippage.ok_or_else(|| Problem::new(ErrorCode::ValidationFailed))?;
    let shortcuts = if form.get("shortcuts") == "on" { "on" } else { "off" };
    let cookies = [
        (SET_COOKIE, cookie_line(SLIPPAGE_COOKIE, &slippage.to_string())?),
        (SET_COOKIE, cookie_line(SHORTCUTS_COOKIE, shortcuts)?),
    ];
    Ok((AppendHeaders(cookies), see(PATH)?).into_response())
}

/// `POST /settings/preferences/name`: sets or removes the name on the leaderboard.
pub async fn set_public_name(
    State(app): State<Shared>,
    Member(person): Member,
    reader: Reader,
    headers: HeaderMap,
    form: FormFields,
) -> Result<Response, Problem> {
    let name = form.get("publicName").to_owned();
    match people::set_public_name(&app.ctx, &person, &name).await {
        Ok(()) => see(PATH),
        Err(error) if error.code == ErrorCode::ValidationFailed => {
            let problem = Problem::from(error);
            let error = problem.field_errors().first().map(|(_, detail)| (*detail).to_owned());
            let page = PreferencesPage { error, ..PreferencesPage::new(&reader, &headers, Some(name)) };
            Ok((StatusCode::BAD_REQUEST, answer(render(&page)?)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /preferences/theme`: stores the theme in a cookie, and returns to the page.
pub async fn set_theme(headers: HeaderMap, form: FormFields) -> Result<Response, Problem> {
    let theme = Theme::WORDS.iter().find(|(known, _)| *known == form.get("theme"));
    let (word, _) = theme.ok_or_else(|| Problem::new(ErrorCode::ValidationFailed))?;
    let headers = [(SET_COOKIE, cookie_line("theme", word)?), (LOCATION, back(&headers))];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Returns the line of a cookie. Scripts may read it: they change the theme without a request.
fn cookie_line(name: &str, value: &str) -> Result<HeaderValue, Problem> {
    let line = format!("{name}={value}; Path=/; Max-Age={MAX_AGE_S}; SameSite=Lax");
    Ok(HeaderValue::try_from(line).map_err(app::AppError::internal)?)
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
