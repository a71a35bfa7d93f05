//! Threads, and imports of catalog files.

use app::admin::{ImportFile, ImportItem, ImportPreview, preview_import};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ids::ThreadId;
use http_kit::{Parameters, PathId, Problem, Query, RawQuery, Shared};
use store::catalog::Thread;

use super::{Admin, Area, ROWS};
use crate::site::form_body::FormFields;
use crate::site::session::problem_of;
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The position in the list of threads.
#[derive(Debug)]
pub struct CatalogQuery {
    after: Option<ThreadId>,
}

impl Parameters for CatalogQuery {
    const NAMES: &'static [&'static str] = &["after"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { after: asked.parsed("after", "must be the id of a thread") })
    }
}

/// A thread of the list, or of its form.
#[derive(Debug, Default)]
struct ThreadLine {
    id: String,
    title: String,
    description: String,
    category: String,
    tags: String,
    image: String,
    organization: String,
    partner: String,
}

impl ThreadLine {
    fn new(thread: Thread) -> Self {
        Self {
            id: thread.id.to_string(),
            title: thread.title,
            description: thread.description.unwrap_or_default(),
            category: thread.category.unwrap_or_default(),
            tags: thread.tags.join(", "),
            image: thread.image.unwrap_or_default(),
            organization: thread.organization_id.map(|id| id.to_string()).unwrap_or_default(),
            partner: thread.partner_id.map(|id| id.to_string()).unwrap_or_default(),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/admin/catalog.html")]
struct CatalogPage {
    shell: Shell,
    area: Area,
    threads: Vec<ThreadLine>,
    next: Option<String>,
}

/// `GET /admin/catalog`.
pub async fn page(
    State(app): State<Shared>,
    _: Admin,
    reader: Reader,
    Query(asked): Query<CatalogQuery>,
) -> Result<Response, Problem> {
    let rows = app
        .ctx
        .store
        .read(asked.after, |tx, after| Box::pin(store::catalog::list_threads(tx, None, *after, ROWS + 1)));
    let mut rows = rows.await?;
    let has_more = rows.len() > ROWS as usize;
    rows.truncate(ROWS as usize);
    let page = CatalogPage {
        shell: Shell::new(&reader, Section::None, "Catalog"),
        area: Area::Catalog,
        next: rows.last().filter(|_| has_more).map(|last| format!("/admin/catalog?after={}", last.id)),
        threads: rows.into_iter().map(ThreadLine::new).collect(),
    };
    Ok(answer(render(&page)?))
}

#[derive(Debug, Template)]
#[template(path = "site/admin/thread.html")]
struct ThreadPage {
    shell: Shell,
    area: Area,
    path: String,
    thread: ThreadLine,
}

/// `GET /admin/catalog/threads/{id}`: the form of a thread. The id `new` is that of a new one.
pub async fn thread(
    State(app): State<Shared>,
    _: Admin,
    reader: Reader,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let thread = match id.as_str() {
        "new" => ThreadLine::default(),
        id => {
            let id: ThreadId = id.parse().map_err(|_| Problem::not_found())?;
            let found = app.ctx.store.read(id, |tx, id| Box::pin(store::catalog::find_thread(tx, *id)));
            ThreadLine::new(found.await?.ok_or_else(Problem::not_found)?)
        }
    };
    let title = if thread.id.is_empty() { "Create a thread".to_owned() } else { thread.title.clone() };
    let page = ThreadPage {
        shell: Shell::new(&reader, Section::None, title),
        area: Area::Catalog,
        path: format!("/admin/catalog/threads/{id}"),
        thread,
    };
    Ok(answer(render(&page)?))
}

#[derive(Debug, Template)]
#[template(path = "site/admin/import.html")]
struct ImportPage {
    shell: Shell,
    area: Area,
    text: String,
    is_json: bool,
    items: Vec<ImportItem>,
    problems: Vec<String>,
}

/// `POST /admin/catalog/plan`: what the import of a file would do. Changes nothing.
pub async fn plan(
    State(app): State<Shared>,
    Admin(admin): Admin,
    reader: Reader,
    fields: FormFields,
) -> Result<Response, Problem> {
    let file = ImportFile { text: fields.get("text").to_owned(), is_json: fields.get("format") == "json" };
    let ImportPreview { items, problems } =
        preview_import(&app.ctx, &admin, &file).await.map_err(|error| problem_of(error, app.ctx.now()))?;
    let page = ImportPage {
        shell: Shell::new(&reader, Section::None, "Import a catalog"),
        area: Area::Catalog,
        text: file.text,
        is_json: file.is_json,
        items,
        problems,
    };
    Ok(answer(render(&page)?))
}
