//! The state of one request.

use std::sync::OnceLock;

use app::caller::Caller;
use app::traces::OpenTrace;
use http_kit::{McpSettings, Problem, RequestId, Shared, TradeWritten};
use protocol::document::DocumentNode;

use super::routes::{Handlers, RouteAnswer, RouteCall};
use super::tools::Tool;

/// A change that a request has tried to make. It may exist although the request failed.
#[derive(Debug, Clone, Copy)]
pub enum Written {
    Trade(TradeWritten),
    /// A claim, or the checks of a dry run.
    Other,
}

/// The state of one request.
pub struct Session {
    pub app: Shared,
    pub caller: Caller,
    pub id: RequestId,
    settings: McpSettings,
    handlers: Handlers,
    pub arguments: DocumentNode,
    /// The trace of the request. The protocol's library runs tools in tasks of its own.
    pub trace: Option<OpenTrace>,
    written: OnceLock<Written>,
}

impl Session {
    pub fn new(
        app: Shared,
        caller: Caller,
        id: RequestId,
        settings: McpSettings,
        handlers: Handlers,
        arguments: DocumentNode,
    ) -> Self {
        let trace = app.ctx.process.traces.current();
        Self { app, caller, id, settings, handlers, arguments, trace, written: OnceLock::new() }
    }

    pub fn written(&self) -> Option<Written> {
        self.written.get().copied()
    }

    /// Calls a route for the caller.
    pub async fn call(&self, call: RouteCall) -> Result<RouteAnswer, Problem> {
        let is_write = call.body.is_some();
        let answer = self.handlers.call(&self.app, &self.caller, self.id, call).await;
        if is_write {
            let trade = answer.as_ref().ok().and_then(|answer| answer.trade);
            self.written.get_or_init(|| trade.map_or(Written::Other, Written::Trade));
        }
        answer
    }

    /// Returns whether the operator allows a tool.
    pub fn allows(&self, tool: Tool) -> bool {
        self.settings.can_trade || !tool.writes()
    }

    /// Returns the tool with this name, if the operator allows it.
    pub fn find(&self, name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name && self.allows(*tool))
    }
}
