//! A local server with the part of web3signer's API that the service uses.

use std::sync::Arc;

use alloy::signers::SignerSync;
use alloy::signers::local::PrivateKeySigner;
use alloy_primitives::keccak256;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chain::Signer;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::signer;

/// The behavior of the server.
#[derive(Debug, Clone, Copy)]
pub enum SignerMode {
    Honest,
    /// It signs with another key.
    OtherKey,
    /// It answers with bytes that are no signature.
    Garbage,
    /// It answers 500.
    Broken,
    /// It does not list the key.
    WithoutKey,
    /// It signs, but its answer is lost.
    LostAnswer,
}

struct Shared {
    key: PrivateKeySigner,
    mode: Mutex<SignerMode>,
    asked: Mutex<Vec<Vec<u8>>>,
}

/// A web3signer server with one key. It stops when dropped.
pub struct FakeWeb3signer {
    pub url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl FakeWeb3signer {
    /// Starts a server that holds this key.
    pub async fn start(key: &Signer) -> Self {
        let key = PrivateKeySigner::from_bytes(&key.to_bytes()).unwrap();
        let shared = Arc::new(Shared { key, mode: Mutex::new(SignerMode::Honest), asked: Mutex::default() });
        let routes = Router::new()
            .route("/api/v1/eth1/publicKeys", get(keys))
            .route("/api/v1/eth1/sign/{key}", post(sign))
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, shared, task }
    }

    pub fn becomes(&self, mode: SignerMode) {
        *self.shared.mode.lock() = mode;
    }

    /// Returns the unsigned transactions that it was asked to sign.
    pub fn asked(&self) -> Vec<Vec<u8>> {
        self.shared.asked.lock().clone()
    }
}

impl Drop for FakeWeb3signer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn public_key(key: &PrivateKeySigner) -> String {
    format!("0x{}", alloy_primitives::hex::encode(key.public_key()))
}

async fn keys(State(shared): State<Arc<Shared>>) -> Response {
    let mode = *shared.mode.lock();
    match mode {
        SignerMode::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        SignerMode::WithoutKey => "[]".into_response(),
        _ => serde_json::json!([public_key(&shared.key)]).to_string().into_response(),
    }
}

async fn sign(State(shared): State<Arc<Shared>>, Path(key): Path<String>, body: String) -> Response {
    if key != public_key(&shared.key) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let body: Value = serde_json::from_str(&body).unwrap();
    let data = alloy_primitives::hex::decode(body["data"].as_str().unwrap()).unwrap();
    shared.asked.lock().push(data.clone());
    let mode = *shared.mode.lock();
    let other = PrivateKeySigner::from_bytes(&signer(199).to_bytes()).unwrap();
    let key = match mode {
        SignerMode::OtherKey => &other,
        SignerMode::Garbage => return "0x1234".into_response(),
        SignerMode::LostAnswer => return StatusCode::GATEWAY_TIMEOUT.into_response(),
        _ => &shared.key,
    };
    let signature = key.sign_hash_sync(&keccak256(&data)).unwrap();
    format!("0x{}", alloy_primitives::hex::encode(signature.as_bytes())).into_response()
}
