//! The components of the pages, side by side. Only in the demonstration.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{Problem, Shared};

use super::shell::{Reader, Section, Shell, answer, render};

#[derive(Debug, Template)]
#[template(path = "site/design.html")]
struct DesignPage {
    shell: Shell,
    /// The numbers of the outcome colors.
    colours: [usize; 8],
    /// The names and the texts of badges and banners.
    states: [(&'static str, &'static str); 4],
}

/// `GET /design`.
pub async fn page(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    if app.ctx.config.faucet.is_none() {
        return Err(Problem::not_found());
    }
    let page = DesignPage {
        shell: Shell::new(&reader, Section::None, "Design"),
        colours: [0, 1, 2, 3, 4, 5, 6, 7],
        states: [("is-good", "Done"), ("is-wait", "Waiting"), ("is-bad", "Failed"), ("is-info", "Note")],
    };
    Ok(answer(render(&page)?))
}
