//! Links for sharing a market or a thread.

use axum::extract::State;
use axum::response::Response;
use domain::ids::{MarketId, ThreadId};
use http_kit::{NamedQuery, NoParameters, PathId, Problem, Shared};
use presentation::links::{card_url, percent_encode};
use presentation::{MarketFace, ThreadFace, next_end};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Meta;
use super::markets::get_market;
use super::threads::get_thread;

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

/// A page in the web application and the links that share it.
#[derive(Debug, Serialize, ToSchema)]
struct SocialLink {
    /// The page in the web application.
    url: String,
    title: String,
    /// The text of the shared message, without the URL.
    text: String,
    /// The URL of an image: the thread's cover, or a card with the current state.
    image: String,
    links: Networks,
}

/// URLs that open the filled-in form of each network.
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
    description = "The URL of the market's page in the web application, and links that share it.",
    params(("id" = MarketId, Path, description = "The market's id.")),
    responses((status = 200, description = "The links.", body = SocialLinkAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND"]))),
)]
pub async fn of_market(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let (market, outcomes) = get_market(&app, &id).await?;
        let now = app.ctx.now();
        let path = format!("/markets/{}", market.id);
        let card = card_url(&app.app_url, &path, &MarketFace::new(&market, &outcomes, now).version());
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
    description = "The URL of the thread's page in the web application, and links that share it.",
    params(("id" = ThreadId, Path, description = "The thread's id.")),
    responses((status = 200, description = "The links.", body = SocialLinksAnswer)),
    extensions(("x-error-codes" = json!(["THREAD_NOT_FOUND"]))),
)]
pub async fn of_thread(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let row = get_thread(&app, &id).await?;
        let (path, title) = (format!("/threads/{}", row.thread.id), row.thread.title.clone());
        let (image, until) = match &row.thread.image {
            // A cover does not change with the market, unlike a card.
            Some(cover) => (cover.clone(), None),
            None => {
                let (face, until) = ThreadFace::read(&app.ctx, row).await?;
                (card_url(&app.app_url, &path, &face.version()), until)
            }
        };
        let link = SocialLink::new(format!("{}{path}", app.app_url), title, image);
        Ok((SocialLinksAnswer { social_links: link }, until))
    };
    meta.kept(&app, &query.name, read).await
}

impl SocialLink {
    fn new(url: String, title: String, image: String) -> Self {
        let text = format!("What does the market think? {title}");
        let (to, said, about) = (percent_encode(&url), percent_encode(&text), percent_encode(&title));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_its_parameter() {
        let link = SocialLink::new("https://a.test/markets/1".into(), "A & B?".into(), String::new());
        assert_eq!(
            link.links.reddit,
            "https://www.reddit.com/submit?url=https%3A%2F%2Fa.test%2Fmarkets%2F1&title=A%20%26%20B%3F"
        );
    }
}
