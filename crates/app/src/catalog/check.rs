//! What rows of the catalogue must be like: every field that is not so is named, not the first one alone.

use domain::trade::FieldError;
use store::catalog::{Chapter, Listing, Organization, Partner, Thread};

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 20_000;
/// The last of the places among the featured markets.
const MAX_FEATURED: u32 = 1_000_000;

/// What is wrong with an organization.
pub(crate) fn organization(organization: &Organization) -> Vec<FieldError> {
    let Organization { name, slug: of, description, logo, website, .. } = organization;
    let found = [
        text("/name", name, 200),
        slug(of),
        optional("/description", description.as_deref(), MAX_DESCRIPTION),
        url("/logo", logo.as_deref()),
        url("/website", website.as_deref()),
    ];
    found.into_iter().flatten().collect()
}

/// What is wrong with a partner.
pub(crate) fn partner(partner: &Partner) -> Vec<FieldError> {
    let Partner { name, slug: of, description, logo, website, .. } = partner;
    let found = [
        text("/name", name, 200),
        slug(of),
        optional("/description", description.as_deref(), MAX_DESCRIPTION),
        url("/logo", logo.as_deref()),
        url("/website", website.as_deref()),
    ];
    found.into_iter().flatten().collect()
}

/// What is wrong with a thread.
pub(crate) fn thread(thread: &Thread) -> Vec<FieldError> {
    let window = match (thread.start_time, thread.end_time) {
        (Some(start), Some(end)) if start >= end => Some(FieldError::new("/endTime", "is after the start")),
        _ => None,
    };
    let found = [
        text("/title", &thread.title, 200),
        optional("/description", thread.description.as_deref(), MAX_DESCRIPTION),
        url("/image", thread.image.as_deref()),
        url("/backgroundImage", thread.background_image.as_deref()),
        optional("/category", thread.category.as_deref(), 100),
        tags(&thread.tags),
        window,
    ];
    found.into_iter().flatten().collect()
}

/// What is wrong with a chapter.
pub(crate) fn chapter(chapter: &Chapter) -> Vec<FieldError> {
    text("/title", &chapter.title, 200).into_iter().collect()
}

/// What is wrong with how a market is listed.
pub(crate) fn listing(listing: &Listing) -> Vec<FieldError> {
    let featured = listing.featured_position.filter(|position| !(1..=MAX_FEATURED).contains(position));
    let found = [
        optional("/description", listing.description.as_deref(), MAX_DESCRIPTION),
        optional("/category", listing.category.as_deref(), 100),
        tags(&listing.tags),
        url("/sourceUrl", listing.source_url.as_deref()),
        featured.map(|_| FieldError::new("/featured", format!("is a place from 1 to {MAX_FEATURED}"))),
    ];
    found.into_iter().flatten().collect()
}

/// A text that is there and not too long.
pub(crate) fn text(pointer: &str, text: &str, most: usize) -> Option<FieldError> {
    let wrong = text.trim().is_empty() || text.chars().count() > most || text.contains('\0');
    wrong.then(|| FieldError::new(pointer, format!("is 1 to {most} characters")))
}

fn optional(pointer: &str, of: Option<&str>, most: usize) -> Option<FieldError> {
    of.and_then(|of| text(pointer, of, most))
}

fn tags(tags: &[String]) -> Option<FieldError> {
    if tags.len() > 50 {
        return Some(FieldError::new("/tags", "are at most 50"));
    }
    tags.iter().find_map(|tag| text("/tags", tag, 100))
}

fn url(pointer: &str, url: Option<&str>) -> Option<FieldError> {
    let url = url?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let well_formed = rest.is_some_and(|rest| !rest.is_empty())
        && url.len() <= 2_000
        && !url.chars().any(|c| c.is_whitespace() || c.is_control());
    (!well_formed).then(|| FieldError::new(pointer, "is an http or https address"))
}

fn slug(slug: &str) -> Option<FieldError> {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let well_formed = slug.len() <= 100 && slug.split('-').all(word);
    let should = "is lower-case words of a-z and 0-9 joined by hyphens, at most 100 characters";
    (!well_formed).then(|| FieldError::new("/slug", should))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_lower_case_words_joined_by_hyphens() {
        for good in ["a", "northlight-media", "2026"] {
            assert_eq!(slug(good), None, "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "a b", "é", &"a".repeat(101)] {
            assert!(slug(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn an_address_is_http_or_https() {
        for good in ["https://example.org/logo.png", "http://localhost:3000"] {
            assert_eq!(url("/logo", Some(good)), None, "{good}");
        }
        for bad in ["", "https://", "javascript:alert(1)", "https://a b", "example.org"] {
            assert!(url("/logo", Some(bad)).is_some(), "{bad}");
        }
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        let wrong = Organization {
            id: domain::ids::OrganizationId(uuid::Uuid::nil()),
            name: " ".to_owned(),
            slug: "A".to_owned(),
            description: None,
            logo: Some("logo.png".to_owned()),
            website: Some("https://example.org".to_owned()),
        };
        let pointers: Vec<_> = organization(&wrong).into_iter().map(|error| error.pointer).collect();
        assert_eq!(pointers, ["/name", "/slug", "/logo"]);
    }
}
