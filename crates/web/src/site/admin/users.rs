//! The list of users.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::credential::Role;
use domain::ids::UserId;
use http_kit::{Parameters, Problem, Query, RawQuery, Shared};
use presentation::amounts;
use presentation::links::percent_encode;
use store::operations::search_users;
use store::users::User;

use super::{Admin, Area, ROWS};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// Maximum length of a search text, in bytes.
const MAX_TEXT: usize = 200;

/// The search.
#[derive(Debug, Clone, Default)]
pub struct UsersQuery {
    text: Option<String>,
    /// The last user of the previous page.
    after: Option<UserId>,
}

impl Parameters for UsersQuery {
    const NAMES: &'static [&'static str] = &["q", "after"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let text = asked.with("q", "must have at most 200 bytes", |text| {
            (text.len() <= MAX_TEXT).then(|| text.trim().to_owned())
        });
        Some(Self { text, after: asked.parsed("after", "must be the id of a user") })
    }
}

/// A user of the list.
#[derive(Debug)]
struct UserLine {
    id: String,
    name: String,
    is_admin: bool,
    tier: &'static str,
    since: String,
}

impl UserLine {
    fn new(user: User) -> Self {
        Self {
            id: user.id.to_string(),
            name: user.name,
            is_admin: user.role == Role::Admin,
            tier: user.tier.as_str(),
            since: amounts::day(user.created_at),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/users.html")]
struct UsersPage {
    shell: Shell,
    area: Area,
    text: String,
    users: Vec<UserLine>,
    next: Option<String>,
}

/// `GET /admin/users`.
pub async fn list(
    State(app): State<Shared>,
    _: Admin,
    reader: Reader,
    Query(asked): Query<UsersQuery>,
) -> Result<Response, Problem> {
    let text = asked.text.unwrap_or_default();
    let input = (text.clone(), asked.after);
    let rows =
        app.ctx.store.read(input, |tx, (text, after)| Box::pin(search_users(tx, text, *after, ROWS + 1)));
    let mut rows = rows.await?;
    let has_more = rows.len() > ROWS as usize;
    rows.truncate(ROWS as usize);
    let address = |last: &User| format!("/admin/users?q={}&after={}", percent_encode(&text), last.id);
    let next = rows.last().filter(|_| has_more).map(address);
    let page = UsersPage {
        shell: Shell::new(&reader, Section::None, "Users"),
        area: Area::Users,
        users: rows.into_iter().map(UserLine::new).collect(),
        next,
        text,
    };
    Ok(answer(render(&page)?))
}
