//! Publishes events to a JetStream stream.

use std::fmt::Display;
use std::time::Duration;

use app::event_sink::{Acknowledgement, EventPublisher, OutgoingEvent, PublishError, StreamState};
use async_nats::connection::State as ClientState;
use async_nats::jetstream::context::{ContextBuilder, GetStreamErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{Client, ConnectOptions};
use async_trait::async_trait;
use bytes::Bytes;
use domain::ids::UserId;
use secrecy::ExposeSecret;
use secrecy::zeroize::Zeroizing;
use tokio::sync::Mutex;

use super::settings::{NatsSettings, UrlUser};
use super::{stream, tls};

/// The time limits of a connection to one server, and of an answer.
const CONNECT: Duration = Duration::from_secs(3);
const ANSWER: Duration = Duration::from_secs(5);
/// The headers with the event's position in the feed and its type.
const POSITION_HEADER: &str = "Foretell-Position";
const TYPE_HEADER: &str = "Foretell-Event-Type";

/// The connection to the stream of the settings. It has no connection until it is opened.
pub struct NatsPublisher {
    settings: NatsSettings,
    connection: Mutex<Option<Connection>>,
}

#[derive(Clone)]
struct Connection {
    context: Context,
    state: StreamState,
}

impl NatsPublisher {
    pub fn new(settings: NatsSettings) -> Self {
        Self { settings, connection: Mutex::new(None) }
    }

    /// Connects, and describes the stream. Nothing is changed.
    pub async fn describe(&self) -> Result<StreamDescription, PublishError> {
        let context = self.connect().await?;
        let NatsSettings { stream, subject, .. } = &self.settings;
        Ok(match self.look(&context).await? {
            (StreamState::Missing, _) => StreamDescription {
                text: format!("the stream {stream} for {subject}.> will be created"),
                warning: None,
            },
            (StreamState::Present, warning) => {
                StreamDescription { text: format!("the stream {stream} takes {subject}.*"), warning }
            }
        })
    }

    async fn connect(&self) -> Result<Context, PublishError> {
        let client = self.connect_client().await?;
        Ok(ContextBuilder::new().timeout(ANSWER).build(client))
    }

    async fn connect_client(&self) -> Result<Client, PublishError> {
        let settings = &self.settings;
        let mut options = ConnectOptions::new()
            .name("foretell")
            .connection_timeout(CONNECT)
            .request_timeout(Some(ANSWER))
            // Each server is tried once. After that, the sink opens a new connection: a client that
            // reconnects by itself could send a message that was already repeated.
            .max_reconnects(settings.servers.len());
        options = match &settings.user {
            Some(UrlUser::Password { user, password }) => {
                options.user_and_password(user.clone(), password.expose_secret().to_owned())
            }
            Some(UrlUser::Token(token)) => options.token(token.expose_secret().to_owned()),
            None => options,
        };
        if let Some(path) = &settings.credentials {
            let wrong = |error: std::io::Error| {
                PublishError(format!("nats-credentials: {} cannot be used: {error}", path.display()))
            };
            let text = tokio::fs::read_to_string(path).await.map(Zeroizing::new).map_err(wrong)?;
            options = options.credentials(&text).map_err(wrong)?;
        }
        // Servers can require TLS although the URL does not.
        match tls::config(settings.ca.as_deref()) {
            Ok(config) => options = options.tls_client_config(config),
            Err(error) if settings.is_encrypted() || settings.ca.is_some() => return Err(failed(error)),
            Err(_) => {}
        }
        options = options.require_tls(settings.ca.is_some());
        options.connect(settings.servers.as_slice()).await.map_err(failed)
    }

    /// Looks for the stream, and checks it.
    async fn look(&self, context: &Context) -> Result<(StreamState, Option<String>), PublishError> {
        match context.get_stream(&self.settings.stream).await {
            Ok(found) => {
                let warning = stream::check(&found.cached_info().config, &self.settings).map_err(failed)?;
                Ok((StreamState::Present, warning))
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok((StreamState::Missing, None))
                }
                _ => Err(failed(error)),
            },
        }
    }

    async fn context(&self) -> Result<Context, PublishError> {
        let connection = self.connection.lock().await;
        let context = connection.as_ref().map(|connection| connection.context.clone());
        context.ok_or_else(|| PublishError("the connection was closed".to_owned()))
    }
}

/// The result of a look at the stream.
#[derive(Debug)]
pub struct StreamDescription {
    pub text: String,
    pub warning: Option<String>,
}

/// Returns the subject of a user's events. The id is a UUID, so it has no character with a meaning in
/// subjects.
fn subject_of(prefix: &str, user_id: UserId) -> String {
    format!("{prefix}.{user_id}")
}

fn failed(error: impl Display) -> PublishError {
    PublishError(error.to_string())
}

#[async_trait]
impl EventPublisher for NatsPublisher {
    fn stream(&self) -> &str {
        &self.settings.stream
    }

    async fn open(&self) -> Result<StreamState, PublishError> {
        let mut connection = self.connection.lock().await;
        let is_connected =
            |open: &&Connection| open.context.client().connection_state() == ClientState::Connected;
        if let Some(open) = connection.as_ref().filter(is_connected) {
            return Ok(open.state);
        }
        *connection = None;
        let context = self.connect().await?;
        let (state, warning) = self.look(&context).await?;
        let servers = self.settings.server_names();
        tracing::debug!(servers, stream = self.settings.stream, "connected to NATS");
        if let Some(warning) = warning {
            tracing::warn!(cause = warning, "the stream is not as it should be");
        }
        *connection = Some(Connection { context, state });
        Ok(state)
    }

    async fn create(&self) -> Result<(), PublishError> {
        let context = self.context().await?;
        context.create_stream(stream::new_config(&self.settings)).await.map_err(failed)?;
        *self.connection.lock().await = Some(Connection { context, state: StreamState::Present });
        Ok(())
    }

    async fn publish(&self, event: &OutgoingEvent) -> Result<Acknowledgement, PublishError> {
        let context = self.context().await?;
        let message = PublishMessage::build()
            .message_id(event.id.to_string())
            // Another stream that took the subject over would otherwise acknowledge.
            .expected_stream(&self.settings.stream)
            .header(POSITION_HEADER, event.position.to_string())
            .header(TYPE_HEADER, event.kind.as_str())
            .payload(Bytes::from(event.body.clone()));
        let subject = subject_of(&self.settings.subject, event.user_id);
        let sent = context.send_publish(subject, message).await.map_err(failed)?;
        let acknowledged = sent.await.map_err(failed)?;
        Ok(match acknowledged.duplicate {
            true => Acknowledgement::Duplicate,
            false => Acknowledgement::Stored,
        })
    }

    async fn close(&self) {
        *self.connection.lock().await = None;
    }
}
