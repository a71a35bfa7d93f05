//! The server of one request. The protocol's library calls it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use app::AppError;
use app::traces::within;
use domain::ErrorCode;
use futures::FutureExt;
use http_kit::Problem;
use protocol::Documented;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as Description,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::run::run;
use super::session::Session;
use super::tools::{INSTRUCTIONS, Tool};

/// The path of the tools, as errors name it.
const PATH: &str = "/mcp";

/// The tools for the caller of one request.
#[derive(Clone)]
pub struct Server(Arc<Session>);

impl Server {
    pub const fn new(session: Arc<Session>) -> Self {
        Self(session)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("foretell", env!("CARGO_PKG_VERSION")).with_title("Foretell");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    /// Lists the tools that the operator allows and the key has the scope of.
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Self(session) = self;
        let has_scope = |tool: &Tool| session.caller.require(tool.scope()).is_ok();
        let tools = Tool::ALL.into_iter().filter(|tool| session.allows(*tool)).filter(has_scope);
        Ok(ListToolsResult::with_all_items(tools.map(Tool::description).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Description> {
        self.0.find(name).map(Tool::description)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Self(session) = self;
        let Some(tool) = session.find(&request.name) else {
            return Err(ErrorData::invalid_params("There is no tool with this name.", None));
        };
        // The library polls this in a task of its own, which neither the guard's deadline ends nor its
        // handler of panics protects.
        let work = within(session.trace.clone(), run(session, tool, session.arguments.clone()));
        let result: Result<Value, Problem> = tokio::select! {
            done = AssertUnwindSafe(work).catch_unwind() => done.unwrap_or_else(|_| Err(panicked(tool))),
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("The request has ended.", None));
            }
        };
        Ok(match result {
            Ok(answer) => CallToolResult::structured(answer).into(),
            Err(problem) => refusal(session, &problem).into(),
        })
    }
}

fn panicked(tool: Tool) -> Problem {
    let problem = Problem::from(AppError::new(ErrorCode::InternalError));
    if tool.writes() { problem.of_write() } else { problem }
}

/// Returns an error as its problem document, with the advice of the code's page.
fn refusal(session: &Session, problem: &Problem) -> CallToolResult {
    problem.log(PATH, session.id);
    let guide = problem.code().guide();
    let mut body = json!(problem.body(&session.app.docs_url, PATH, session.id));
    body["canBeRepeated"] = guide.retry.advice().into();
    body["whatToDo"] = guide.fix.into();
    if let Some(seconds) = problem.retry_after_s() {
        body["retryAfterSeconds"] = seconds.into();
    }
    CallToolResult::error(vec![ContentBlock::text(body.to_string())])
}
