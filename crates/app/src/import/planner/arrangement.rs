//! Plans organizations, partners, threads and chapters.

use domain::ids::{OrganizationId, PartnerId, ThreadId};
use domain::text::shown;
use serde_json::{Value, json};
use store::catalog::{Chapter, Organization, Partner, Thread};

use super::super::ImportKind;
use super::super::document::{ChapterItem, OrganizationItem, PartnerItem, ThreadItem};
use super::super::plan::{ImportAction, ImportRow};
use super::Planner;
use crate::catalog::check;

impl<'a> Planner<'a> {
    pub(super) fn organizations(&mut self, items: &'a [OrganizationItem]) {
        for (index, item) in items.iter().enumerate() {
            let at = format!("/organizations/{index}");
            self.check_key(ImportKind::Organization, &item.key, &at);
            let id = self.id_of(ImportKind::Organization, &item.key);
            let row = Organization {
                id: OrganizationId(id),
                name: item.name.clone(),
                slug: item.slug.clone(),
                description: item.description.clone(),
                logo: item.logo.clone(),
                website: item.website.clone(),
            };
            self.refuse_fields(&at, check::organization(&row));
            self.check_slug(ImportKind::Organization, &item.slug, id, &at);
            self.organizations.insert(&item.key, row.id);
            let said = (&Value::Null, &json!(item));
            self.step(ImportKind::Organization, &item.key, id, said, ImportRow::Organization(row));
        }
    }

    pub(super) fn partners(&mut self, items: &'a [PartnerItem]) {
        for (index, item) in items.iter().enumerate() {
            let at = format!("/partners/{index}");
            self.check_key(ImportKind::Partner, &item.key, &at);
            let id = self.id_of(ImportKind::Partner, &item.key);
            let Some(organization_id) = self.organization(&at, &item.organization) else { continue };
            let row = Partner {
                id: PartnerId(id),
                organization_id,
                name: item.name.clone(),
                slug: item.slug.clone(),
                description: item.description.clone(),
                logo: item.logo.clone(),
                website: item.website.clone(),
                active: item.active,
            };
            self.refuse_fields(&at, check::partner(&row));
            self.check_slug(ImportKind::Partner, &item.slug, id, &at);
            let terms = json!(organization_id);
            self.check_stays(ImportKind::Partner, &item.key, &terms, &at, "organization");
            self.partners.insert(&item.key, row.clone());
            self.step(ImportKind::Partner, &item.key, id, (&terms, &json!(item)), ImportRow::Partner(row));
        }
    }

    pub(super) fn threads(&mut self, items: &'a [ThreadItem]) {
        for (index, item) in items.iter().enumerate() {
            let at = format!("/threads/{index}");
            self.check_key(ImportKind::Thread, &item.key, &at);
            let id = self.id_of(ImportKind::Thread, &item.key);
            let (organization_id, partner_id) = self.place_of_thread(&at, item);
            let row = Thread {
                id: ThreadId(id),
                organization_id,
                partner_id,
                title: item.title.clone(),
                description: item.description.clone(),
                image: item.image.clone(),
                background_image: item.background_image.clone(),
                category: item.category.clone(),
                tags: item.tags.clone(),
                start_time: item.start_time,
                end_time: item.end_time,
            };
            self.refuse_fields(&at, check::thread(&row));
            let said = (&Value::Null, &json!([item, organization_id, partner_id]));
            self.step(ImportKind::Thread, &item.key, id, said, ImportRow::Thread(row.clone()));
            // A skipped item keeps changes that were made outside of imports, and its markets must
            // be listed under those.
            let is_skipped = self.steps.last().is_some_and(|step| step.action == ImportAction::Skip);
            let kept = self.known.threads.get(&item.key).filter(|_| is_skipped).cloned();
            self.threads.insert(&item.key, kept.unwrap_or_else(|| row.clone()));
            self.said_threads.insert(row.id, row);
        }
    }

    pub(super) fn chapters(&mut self, items: &'a [ChapterItem]) {
        for (index, item) in items.iter().enumerate() {
            let at = format!("/chapters/{index}");
            self.check_key(ImportKind::Chapter, &item.key, &at);
            let id = self.id_of(ImportKind::Chapter, &item.key);
            let next = self.next_position.entry(&item.thread).or_default();
            // Positions follow the order of the file, also after an explicit position.
            let position = item.position.unwrap_or(*next);
            *next = position.saturating_add(1);
            let Some(thread) = self.thread(&item.thread) else {
                self.unknown(&at, "thread", ImportKind::Thread, &item.thread);
                continue;
            };
            let thread_id = thread.id;
            let row = Chapter { id: id.to_string(), thread_id, title: item.title.clone(), position };
            self.refuse_fields(&at, check::chapter(&row));
            let terms = json!(thread_id);
            self.check_stays(ImportKind::Chapter, &item.key, &terms, &at, "thread");
            self.chapters.insert(&item.key, row.clone());
            let content = json!([item, position]);
            self.step(ImportKind::Chapter, &item.key, id, (&terms, &content), ImportRow::Chapter(row));
        }
    }

    fn place_of_thread(
        &mut self,
        at: &str,
        item: &ThreadItem,
    ) -> (Option<OrganizationId>, Option<PartnerId>) {
        let organization_id = item.organization.as_ref().and_then(|key| self.organization(at, key));
        let Some(key) = &item.partner else { return (organization_id, None) };
        let found = self.partners.get(key.as_str()).or_else(|| self.known.partners.get(key));
        let Some((id, of_partner)) = found.map(|partner| (partner.id, partner.organization_id)) else {
            self.unknown(at, "partner", ImportKind::Partner, key);
            return (organization_id, None);
        };
        if organization_id.is_some_and(|organization| organization != of_partner) {
            self.refuse(
                at,
                "partner",
                format!("must be a partner of the same organization, got {}", shown(key)),
            );
        }
        (Some(of_partner), Some(id))
    }

    fn organization(&mut self, at: &str, key: &str) -> Option<OrganizationId> {
        let here = self.organizations.get(key).copied();
        let before =
            || self.import(ImportKind::Organization, key).and_then(|import| import.row_id.parse().ok());
        let found = here.or_else(before);
        if found.is_none() {
            self.unknown(at, "organization", ImportKind::Organization, key);
        }
        found
    }

    /// Returns the thread of this key, from this file or an earlier import.
    pub(super) fn thread(&self, key: &str) -> Option<&Thread> {
        self.threads.get(key).or_else(|| self.known.threads.get(key))
    }
}
