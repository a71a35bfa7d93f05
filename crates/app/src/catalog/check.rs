//! Validation of catalog rows. Reports every invalid field, not only the first.

use domain::text::{has_control, is_control};
use domain::trade::FieldError;
use store::catalog::{Chapter, Listing, Organization, Partner, Thread};

/// The maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 20_000;
/// The highest position of a featured market.
const MAX_FEATURED: u32 = 1_000_000;

pub(crate) fn organization(organization: &Organization) -> Vec<FieldError> {
    let Organization { name, slug: of, description, logo, website, .. } = organization;
    let found = [
        line("/name", name, 200),
        slug(of),
        optional("/description", description.as_deref(), MAX_DESCRIPTION),
        url("/logo", logo.as_deref()),
        url("/website", website.as_deref()),
    ];
    found.into_iter().flatten().collect()
}

pub(crate) fn partner(partner: &Partner) -> Vec<FieldError> {
    let Partner { name, slug: of, description, logo, website, .. } = partner;
    let found = [
        line("/name", name, 200),
        slug(of),
        optional("/description", description.as_deref(), MAX_DESCRIPTION),
        url("/logo", logo.as_deref()),
        url("/website", website.as_deref()),
    ];
    found.into_iter().flatten().collect()
}

pub(crate) fn thread(thread: &Thread) -> Vec<FieldError> {
    let window = match (thread.start_time, thread.end_time) {
        (Some(start), Some(end)) if start >= end => {
            Some(FieldError::new("/endTime", "must be after startTime").got(&end.to_string()))
        }
        _ => None,
    };
    let found = [
        line("/title", &thread.title, 200),
        optional("/description", thread.description.as_deref(), MAX_DESCRIPTION),
        url("/image", thread.image.as_deref()),
        url("/backgroundImage", thread.background_image.as_deref()),
        optional_line("/category", thread.category.as_deref(), 100),
        tags(&thread.tags),
        window,
    ];
    found.into_iter().flatten().collect()
}

pub(crate) fn chapter(chapter: &Chapter) -> Vec<FieldError> {
    line("/title", &chapter.title, 200).into_iter().collect()
}

pub(crate) fn listing(listing: &Listing) -> Vec<FieldError> {
    let featured = listing.featured_position.filter(|position| !(1..=MAX_FEATURED).contains(position));
    let found = [
        optional("/description", listing.description.as_deref(), MAX_DESCRIPTION),
        optional_line("/category", listing.category.as_deref(), 100),
        tags(&listing.tags),
        url("/sourceUrl", listing.source_url.as_deref()),
        featured.map(|place| {
            let requirement = format!("must be a position from 1 to {MAX_FEATURED}");
            FieldError::new("/featured", requirement).got(&place.to_string())
        }),
    ];
    found.into_iter().flatten().collect()
}

/// Validates a required text that may have several lines.
pub(crate) fn text(pointer: &str, text: &str, most: usize) -> Option<FieldError> {
    readable(pointer, text, most, true)
}

/// Validates a required text of one line.
pub(crate) fn line(pointer: &str, text: &str, most: usize) -> Option<FieldError> {
    readable(pointer, text, most, false)
}

fn readable(pointer: &str, text: &str, most: usize, several_lines: bool) -> Option<FieldError> {
    if text.trim().is_empty() || text.chars().count() > most {
        return Some(FieldError::new(pointer, format!("must have 1 to {most} characters")).got(text));
    }
    let requirement = "must not contain control characters or characters that override the direction of text";
    has_control(text, several_lines).then(|| FieldError::new(pointer, requirement).got(text))
}

fn optional(pointer: &str, of: Option<&str>, most: usize) -> Option<FieldError> {
    of.and_then(|of| text(pointer, of, most))
}

fn optional_line(pointer: &str, of: Option<&str>, most: usize) -> Option<FieldError> {
    of.and_then(|of| line(pointer, of, most))
}

fn tags(tags: &[String]) -> Option<FieldError> {
    if tags.len() > 50 {
        return Some(FieldError::new("/tags", "must be at most 50").got(&tags.len().to_string()));
    }
    tags.iter().enumerate().find_map(|(index, tag)| {
        let pointer = format!("/tags/{index}");
        // Filters list tags separated by commas.
        let has_comma =
            tag.contains(',').then(|| FieldError::new(&pointer, "must not contain a comma").got(tag));
        line(&pointer, tag, 100).or(has_comma)
    })
}

fn url(pointer: &str, url: Option<&str>) -> Option<FieldError> {
    let url = url?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let well_formed = rest.is_some_and(|rest| !rest.is_empty())
        && url.len() <= 2_000
        && !url.chars().any(|c| c.is_whitespace() || is_control(c));
    let requirement = "must be an http or https address of at most 2000 characters";
    (!well_formed).then(|| FieldError::new(pointer, requirement).got(url))
}

fn slug(slug: &str) -> Option<FieldError> {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let well_formed = slug.len() <= 100 && slug.split('-').all(word);
    let requirement = "must be lower-case words of a-z and 0-9 joined by hyphens, at most 100 characters";
    (!well_formed).then(|| FieldError::new("/slug", requirement).got(slug))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_lowercase_words_joined_by_hyphens() {
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
    fn every_invalid_field_is_reported() {
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
