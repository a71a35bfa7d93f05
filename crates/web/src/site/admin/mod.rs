//! The operators' pages. For everyone but an admin they do not exist.
//!
//! A form of these pages only prepares an act (`acts`). The admin then reads its consequences and
//! confirms exactly that act with a passkey.

pub mod acts;
pub mod audit;
pub mod catalog;
mod form;
pub mod market;
pub mod markets;
pub mod overview;
pub mod service;
pub mod user;
pub mod users;

use app::sessions::Person;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use http_kit::{Problem, Shared, Visitor};

/// The number of rows per page of a list.
const ROWS: u32 = 50;

/// The admin who sent the request. For everyone else the page does not exist.
#[derive(Debug, Clone)]
pub struct Admin(pub Person);

impl<S: Sync> FromRequestParts<S> for Admin
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Visitor(person) = Visitor::from_request_parts(parts, state).await?;
        let app = Shared::from_ref(state);
        let admin = person.filter(|person| person.require_admin(&app.ctx).is_ok());
        admin.map(Self).ok_or_else(Problem::not_found)
    }
}

/// The areas of the operators' pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    Overview,
    Markets,
    Users,
    Catalog,
    Switches,
    Webhooks,
    Quarantine,
    Audit,
}

impl Area {
    /// The links of the side navigation.
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Overview, "/admin", "Overview"),
        (Self::Markets, "/admin/markets", "Markets"),
        (Self::Users, "/admin/users", "Users"),
        (Self::Catalog, "/admin/catalog", "Catalog"),
        (Self::Switches, "/admin/switches", "Kill switches"),
        (Self::Webhooks, "/admin/webhooks", "Webhooks"),
        (Self::Quarantine, "/admin/quarantine", "Quarantine"),
        (Self::Audit, "/admin/audit", "Audit log"),
    ];

    /// Returns the area of a page's path.
    fn of(path: &str) -> Self {
        let within =
            |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let found = Self::ALL.iter().skip(1).find(|(_, root, _)| within(root));
        found.map_or(Self::Overview, |(area, _, _)| *area)
    }

    /// Returns all areas, for the template.
    #[expect(clippy::unused_self, reason = "templates call functions through their values")]
    fn links(self) -> [(Self, &'static str, &'static str); 8] {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_area_that_it_begins_with() {
        assert_eq!(Area::of("/admin/markets/1"), Area::Markets);
        assert_eq!(Area::of("/admin/audit"), Area::Audit);
        assert_eq!(Area::of("/admin"), Area::Overview);
        assert_eq!(Area::of("/admin/marketsmen"), Area::Overview);
    }
}
