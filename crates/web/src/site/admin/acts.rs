//! Acts of admins: prepared by a form, confirmed with a passkey, and shown with their result.

use app::admin::{Fact, PrintedCall, confirm, find, outcome_of, prepare, request_of, summary_of};
use app::{AppError, PersonError};
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::ids::AdminActId;
use http_kit::{ClientAddress, PathId, Problem, Shared, Surface};
use presentation::amounts;
use serde_json::json;
use store::admin_acts::AdminAct;

use super::{Admin, Area, form};
use crate::site::form_body::{FormFields, ScriptBody};
use crate::site::session::{problem_of, see};
use crate::site::shell::{Reader, Section, Shell, answer, render};
use crate::site::sign_in::Credentials;

/// The time for which a prepared act can be confirmed, like its challenge.
const CONFIRMABLE_MS: i64 = 5 * domain::time::MINUTE_MS;

/// The state of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActState {
    Waiting,
    Expired,
    /// Confirmed, but without a result: it runs, or its process died.
    Running,
    Done,
    Failed,
}

#[derive(Debug, Template)]
#[template(path = "site/admin/act.html")]
struct ActPage {
    shell: Shell,
    area: Area,
    id: String,
    title: String,
    facts: Vec<Fact>,
    consequences: Vec<String>,
    /// The page that the act belongs to.
    path: String,
    /// The form that it came from, with its values.
    change: Option<String>,
    state: ActState,
    until: String,
    challenge: String,
    error: Option<String>,
    notes: Vec<String>,
    calls: Vec<PrintedCall>,
    chain_id: u64,
}

#[derive(Debug, Template)]
#[template(path = "site/admin/refused.html")]
struct RefusedPage {
    shell: Shell,
    area: Area,
    detail: String,
    fields: Vec<(String, String)>,
    back: String,
}

/// `POST /admin/acts`: prepares the act of a form.
pub async fn create(
    State(app): State<Shared>,
    Admin(person): Admin,
    reader: Reader,
    fields: FormFields,
) -> Result<Response, Problem> {
    let prepared = async {
        let request = form::request_of(&app, &fields)?;
        prepare(&app.ctx, &person, &request).await
    };
    match prepared.await {
        Ok(act) => see(&format!("/admin/acts/{}", act.id)),
        Err(PersonError::App(error)) if error.code.status() < 500 => {
            super::markets::again(&reader, &fields, &error)
                .unwrap_or_else(|| refused(&reader, &fields, error))
        }
        Err(error) => Err(problem_of(error, app.ctx.now())),
    }
}

/// Says why an act cannot be prepared.
fn refused(reader: &Reader, fields: &FormFields, error: AppError) -> Result<Response, Problem> {
    let back = Some(fields.get("back")).filter(|path| path.starts_with("/admin")).unwrap_or("/admin");
    let page = RefusedPage {
        shell: Shell::new(reader, Section::None, "Not possible now"),
        area: Area::of(back),
        detail: error.detail.clone(),
        fields: field_errors(&error),
        back: back.to_owned(),
    };
    let status = Problem::from(error).status(Surface::Web);
    Ok((status, answer(render(&page)?)).into_response())
}

/// Returns the wrong fields of an error with their requirements.
pub fn field_errors(error: &AppError) -> Vec<(String, String)> {
    let errors = error.extensions.get("errors").and_then(serde_json::Value::as_array);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let pair = |field: &serde_json::Value| {
        (text(&field["pointer"]).trim_start_matches('/').to_owned(), text(&field["detail"]))
    };
    errors.into_iter().flatten().map(pair).collect()
}

/// `GET /admin/acts/{id}`: what the admin confirms, or what became of it.
pub async fn page(
    State(app): State<Shared>,
    Admin(person): Admin,
    reader: Reader,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id: AdminActId = id.parse().map_err(|_| Problem::not_found())?;
    let act = find(&app.ctx, &person, id).await?;
    let (summary, outcome) = (summary_of(&act)?, outcome_of(&act)?);
    let now = app.ctx.now();
    let state = match (&outcome, act.confirmed_at) {
        (Some(outcome), _) if outcome.error.is_some() => ActState::Failed,
        (Some(_), _) => ActState::Done,
        (None, Some(_)) => ActState::Running,
        (None, None) if now.since_ms(act.created_at) >= CONFIRMABLE_MS => ActState::Expired,
        (None, None) => ActState::Waiting,
    };
    let outcome = outcome.unwrap_or_default();
    let page = ActPage {
        shell: Shell::new(&reader, Section::None, summary.title.clone()),
        area: Area::of(&summary.path),
        id: act.id.to_string(),
        title: summary.title,
        facts: summary.facts,
        consequences: summary.consequences,
        path: summary.path,
        change: change_of(&act)?,
        state,
        until: amounts::minute(act.created_at.plus_ms(CONFIRMABLE_MS)),
        challenge: act.challenge.to_string(),
        error: outcome.error,
        notes: outcome.notes,
        calls: outcome.calls,
        chain_id: app.ctx.chain.chain_id(),
    };
    Ok(answer(render(&page)?))
}

/// Returns the address of the form of a new market with the act's values.
fn change_of(act: &AdminAct) -> Result<Option<String>, Problem> {
    let is_new = matches!(request_of(act)?, app::admin::AdminRequest::CreateMarket(_));
    Ok(is_new.then(|| format!("/admin/markets/new?from={}", act.id)))
}

/// `POST /app/admin-acts/{id}`: confirms an act with a passkey's assertion, and runs it.
pub async fn confirm_act(
    State(app): State<Shared>,
    Admin(person): Admin,
    ClientAddress(ip): ClientAddress,
    PathId(id): PathId,
    ScriptBody(body): ScriptBody<Credentials>,
) -> Result<Response, Problem> {
    let id: AdminActId = id.parse().map_err(|_| Problem::not_found())?;
    let proof = body.proof()?;
    // A browser that hangs up must not leave an act half done.
    let ran = app.mutate(async move |app| Ok(confirm(&app.ctx, &person, id, &proof, ip).await)).await?;
    let act = ran.map_err(|error| problem_of(error, app.ctx.now()))?;
    Ok(http_kit::json(&json!({ "next": format!("/admin/acts/{}", act.id) })))
}
