//! Links with which a market or a thread is shared.

use axum::extract::State;
use axum::response::Response;
use domain::ids::{MarketId, ThreadId};
use serde::Serialize;
use utoipa::ToSchema;

use super::Refusal;
use super::answer::Meta;
use super::embeds::{MarketFace, ThreadFace, card_address};
use super::market_record::next_end;
use super::markets::get_market;
use super::query::{NoParameters, Query};
use super::threads::get_thread;
use crate::http::{PathId, Shared};

/// A market's links.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SocialLinkAnswer {
    social_link: SocialLink,
}

/// A thread's links.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SocialLinksAnswer {
    social_links: SocialLink,
}

/// What a page about it is called, where it stands, and where one shares it.
#[derive(Debug, Serialize, ToSchema)]
struct SocialLink {
    /// The page in the web application.
    url: String,
    title: String,
    /// What the shared message says beside the address.
    text: String,
    /// A picture's address: the thread's cover, or the card of what is shared as it stands now.
    image: String,
    links: Networks,
}

/// Addresses that open each network's form, filled in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SocialNetworks)]
struct Networks {
    x: String,
    farcaster: String,
    telegram: String,
    reddit: String,
    linkedin: String,
    email: String,
}

/// `GET /api/markets/{id}/social-link`.
#[utoipa::path(
    get, path = "/api/markets/{id}/social-link", operation_id = "getMarketSocialLink", tag = "Markets",
    summary = "Share a market",
    description = "The market's page in the web application, and addresses that share it.",
    params(("id" = MarketId, Path, description = "The market's id.")),
    responses((status = 200, description = "The links.", body = SocialLinkAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND"]))),
)]
pub async fn of_market(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: Query<NoParameters>,
    meta: Meta,
) -> Result<Response, Refusal> {
    let read = async || {
        let (market, outcomes) = get_market(&app, &id).await?;
        let now = app.ctx.now();
        let path = format!("/markets/{}", market.id);
        let card = card_address(&app, &path, &MarketFace::new(&market, &outcomes, now).version());
        let until = next_end(std::iter::once(&market), now);
        let link = SocialLink::new(format!("{}{path}", app.app_url), market.question, card);
        Ok((SocialLinkAnswer { social_link: link }, until))
    };
    meta.kept(&app, &query.name, read).await
}

/// `GET /api/threads/{id}/social-links`.
#[utoipa::path(
    get, path = "/api/threads/{id}/social-links", operation_id = "getThreadSocialLinks", tag = "Threads",
    summary = "Share a thread",
    description = "The thread's page in the web application, and addresses that share it.",
    params(("id" = ThreadId, Path, description = "The thread's id.")),
    responses((status = 200, description = "The links.", body = SocialLinksAnswer)),
    extensions(("x-error-codes" = json!(["THREAD_NOT_FOUND"]))),
)]
pub async fn of_thread(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: Query<NoParameters>,
    meta: Meta,
) -> Result<Response, Refusal> {
    let read = async || {
        let thread = get_thread(&app, &id).await?.thread;
        let path = format!("/threads/{}", thread.id);
        let (image, until) = match thread.image {
            Some(cover) => (cover, None),
            None => {
                let (face, until) = ThreadFace::read(&app, &id).await?;
                (card_address(&app, &path, &face.version()), until)
            }
        };
        let link = SocialLink::new(format!("{}{path}", app.app_url), thread.title, image);
        Ok((SocialLinksAnswer { social_links: link }, until))
    };
    meta.kept(&app, &query.name, read).await
}

impl SocialLink {
    fn new(url: String, title: String, image: String) -> Self {
        let text = format!("What does the market think? {title}");
        let (to, said, about) = (encoded(&url), encoded(&text), encoded(&title));
        let links = Networks {
            x: format!("https://x.com/intent/post?text={said}&url={to}"),
            farcaster: format!("https://farcaster.xyz/~/compose?text={said}&embeds[]={to}"),
            telegram: format!("https://t.me/share/url?url={to}&text={said}"),
            reddit: format!("https://www.reddit.com/submit?url={to}&title={about}"),
            linkedin: format!("https://www.linkedin.com/sharing/share-offsite/?url={to}"),
            email: format!("mailto:?subject={about}&body={said}%0A%0A{to}"),
        };
        Self { url, title, text, image, links }
    }
}

/// A text as a part of a query: everything but unreserved characters in percent-encoded UTF-8.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_its_parameter() {
        assert_eq!(encoded("a b&c=d#é\"<>'\n"), "a%20b%26c%3Dd%23%C3%A9%22%3C%3E%27%0A");
        let link = SocialLink::new("https://a.test/markets/1".into(), "A & B?".into(), String::new());
        assert_eq!(
            link.links.reddit,
            "https://www.reddit.com/submit?url=https%3A%2F%2Fa.test%2Fmarkets%2F1&title=A%20%26%20B%3F"
        );
    }
}
