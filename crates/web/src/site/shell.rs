//! The common parts of all pages of the site: the head, the header and the footer, and how a page is
//! rendered and cached.

use app::sessions::Person;
use app::trading_stop::{self, TradingStop};
use askama::Template;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use http_kit::{CachedBody, Problem, Shared, Visitor, cookie};
use presentation::links::{SITE, card_url, oembed_url};
use presentation::{Theme, amounts};

use super::country::Country;
use super::slippage::slippage_of;
use crate::assets;

/// The cookie of the chosen theme.
pub const THEME_COOKIE: &str = "theme";
/// Maximum length of a page's description, in characters.
const MOST_DESCRIPTION: usize = 200;

/// The sections of the header's navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Markets,
    Threads,
    Leaderboard,
    Docs,
    None,
}

/// The reader that a page is rendered for.
#[derive(Debug, Clone)]
pub struct Reader {
    pub theme: Theme,
    /// The path and the query of the page.
    pub path: String,
    /// The bound that the reader has chosen for the price of an order, in hundredths of a percent.
    pub slippage_bps: u16,
    /// The reader's session, if there is one.
    pub person: Option<Person>,
    pub country: Country,
    /// Why nobody can trade, if so.
    pub stop: Option<StopBanner>,
    /// Readers can sign up and sign in.
    has_accounts: bool,
    /// The reader may open the operators' pages.
    is_admin: bool,
}

impl Reader {
    /// Returns a reader without a session.
    pub fn anonymous(headers: &HeaderMap) -> Self {
        let theme = cookie(headers, THEME_COOKIE)
            .and_then(|word| Theme::WORDS.iter().find(|(known, _)| *known == word))
            .map_or(Theme::Auto, |(_, theme)| *theme);
        Self {
            theme,
            path: String::new(),
            slippage_bps: slippage_of(headers),
            person: None,
            country: Country::default(),
            stop: None,
            has_accounts: false,
            is_admin: false,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Reader
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Visitor(person) = Visitor::from_request_parts(parts, state).await?;
        let Ok(country) = Country::from_request_parts(parts, state).await;
        let app = Shared::from_ref(state);
        let has_accounts = app.ctx.config.web.is_some();
        let is_admin = person.as_ref().is_some_and(|person| person.require_admin(&app.ctx).is_ok());
        let path = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
        // A page must not fail because its banner cannot be read.
        let stop = trading_stop::find(&app.ctx).await.ok().flatten().map(|stop| StopBanner::new(&stop));
        Ok(Self { path, person, country, stop, has_accounts, is_admin, ..Self::anonymous(&parts.headers) })
    }
}

/// Says on every page why nobody can trade.
#[derive(Debug, Clone)]
pub struct StopBanner {
    pub heading: &'static str,
    /// The operator's reason.
    pub reason: Option<String>,
    pub text: String,
}

impl StopBanner {
    pub fn new(stop: &TradingStop) -> Self {
        let (heading, text) = match stop {
            TradingStop::Halted { .. } => {
                ("Trading is halted", "Claims and withdrawals still work.".to_owned())
            }
            TradingStop::Recovering => {
                ("Trading is paused", "Restored data is compared with the chain.".to_owned())
            }
            TradingStop::ChainUnavailable { prices_at } => {
                let at = prices_at.map(|at| format!(" Prices are those of {}.", amounts::minute(at)));
                let text = "Nothing is lost, and trading continues as soon as it does.";
                ("The chain does not answer", format!("{text}{}", at.unwrap_or_default()))
            }
            TradingStop::Degraded => {
                ("Trading is paused", "The service does not work properly at the moment.".to_owned())
            }
        };
        let reason = match stop {
            TradingStop::Halted { reason } => reason.clone(),
            _ => None,
        };
        Self { heading, reason, text }
    }
}

/// The account menu of the header.
#[derive(Debug)]
pub struct AccountMenu {
    pub initial: String,
    /// The person may open the operators' pages.
    pub is_admin: bool,
}

/// The parts around a page's content.
#[derive(Debug)]
pub struct Shell {
    pub theme: Option<&'static str>,
    pub site: &'static str,
    pub title: String,
    pub description: String,
    pub section: Section,
    /// The page's own URL, for pages that search engines list.
    pub canonical: Option<String>,
    /// The URLs of the card and of the oEmbed document, for pages that others embed.
    pub card: Option<String>,
    pub oembed: Option<String>,
    /// The text in the search field.
    pub search: String,
    pub menu: Option<AccountMenu>,
    pub has_accounts: bool,
    pub stop: Option<StopBanner>,
}

impl Shell {
    pub fn new(reader: &Reader, section: Section, title: impl Into<String>) -> Self {
        Self {
            theme: reader.theme.fixed(),
            site: SITE,
            title: title.into(),
            description: String::new(),
            section,
            canonical: None,
            card: None,
            oembed: None,
            search: String::new(),
            menu: reader.person.as_ref().map(|person| AccountMenu {
                initial: initial_of(&person.user().name),
                is_admin: reader.is_admin,
            }),
            has_accounts: reader.has_accounts,
            stop: reader.stop.clone(),
        }
    }

    /// Sets the description for search engines and link previews.
    #[must_use]
    pub fn described(self, description: &str) -> Self {
        let mut words = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = words.char_indices().nth(MOST_DESCRIPTION) {
            words.truncate(end);
            words.push('…');
        }
        Self { description: words, ..self }
    }

    /// Lets search engines list the page at `path`.
    #[must_use]
    pub fn listed_at(self, app: &Shared, path: &str) -> Self {
        Self { canonical: Some(format!("{}{path}", app.app_url)), ..self }
    }

    /// Adds a card with this version and an oEmbed document, for the resource at `path`.
    #[must_use]
    pub fn with_card(self, app: &Shared, path: &str, version: &str) -> Self {
        let url = format!("{}{path}", app.app_url);
        Self {
            card: Some(card_url(&app.app_url, path, version)),
            oembed: Some(oembed_url(&app.app_url, &url)),
            ..self
        }
    }

    /// Returns the path of an asset.
    #[expect(clippy::unused_self, reason = "templates call functions through their values")]
    pub fn asset(&self, name: &str) -> String {
        assets::path_of(name)
    }

    /// Returns the path of a category's image.
    #[expect(clippy::unused_self, reason = "templates call functions through their values")]
    pub fn image(&self, category: Option<&String>) -> Option<String> {
        category.and_then(|category| assets::image_of(category))
    }

    /// Returns the letter that replaces a missing image.
    #[expect(clippy::unused_self, reason = "templates call functions through their values")]
    pub fn initial(&self, name: &str) -> String {
        initial_of(name)
    }
}

fn initial_of(name: &str) -> String {
    let letter = name.chars().find(|letter| letter.is_alphanumeric());
    letter.map_or_else(String::new, |letter| letter.to_uppercase().collect())
}

/// Renders a page.
pub fn render(page: &impl Template) -> Result<CachedBody, Problem> {
    Ok(CachedBody::of(page.render().map_err(app::AppError::internal)?.into_bytes()))
}

/// Returns a rendered page as a response.
pub fn answer(page: CachedBody) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], page.whole()).into_response()
}

/// Returns the page that `read` builds. A reader without a session may get one that is at most a quarter
/// of a second old. `read` also returns when the page expires even if nothing changes.
pub async fn cached<P: Template>(
    app: &Shared,
    reader: &Reader,
    name: &str,
    read: impl AsyncFnOnce() -> Result<(P, Option<Timestamp>), Problem>,
) -> Result<Response, Problem> {
    if reader.person.is_some() {
        let (page, _) = read().await?;
        return Ok(answer(render(&page)?));
    }
    // Pages differ by theme. A path begins with a slash, so the names never collide with others.
    let name = format!("{} {name}", reader.theme.fixed().unwrap_or("auto"));
    let render = async || {
        let (page, until) = read().await?;
        Ok::<_, Problem>((render(&page)?, until))
    };
    app.responses.for_a_moment(&app.ctx, &name, render).await.map(answer)
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;

    fn headers(lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (COOKIE, HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn the_theme_is_that_of_the_cookie_if_it_is_known() {
        for (lines, theme) in [
            (&[][..], Theme::Auto),
            (&["theme=dark"], Theme::Dark),
            (&["a=1; theme=light"], Theme::Light),
            (&["a=1", "theme=dark"], Theme::Dark),
            (&["theme=<script>"], Theme::Auto),
            (&["xtheme=dark"], Theme::Auto),
        ] {
            assert_eq!(Reader::anonymous(&headers(lines)).theme, theme, "{lines:?}");
        }
    }

    #[test]
    fn descriptions_are_one_line_of_bounded_length() {
        let shell =
            Shell::new(&Reader::anonymous(&headers(&[])), Section::None, "T").described(&"é \n".repeat(300));
        assert_eq!(shell.description.chars().count(), MOST_DESCRIPTION + 1);
        assert!(shell.description.ends_with('…') && !shell.description.contains('\n'));
    }
}
