//! Acts: batches of calls that an owner of the account signs in the browser.

use alloy_primitives::{Address, B256, Bytes, U256};
use app::owner_acts::{
    self, ActOrigin, Caps, OwnerActRequest, OwnerOrder, OwnerSignature, PreparedAct, WithdrawalAmount,
    error_of, sign, withdrawal_of,
};
use app::passkeys::{owner_of, web};
use app::sessions::Person;
use app::{AppError, people};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chain::{AccountOwner, Assertion, Call};
use domain::ids::{KeyId, OwnerActId};
use domain::owner_act::{OwnerActKind, OwnerActStatus};
use domain::trade::Side;
use domain::{ErrorCode, Usdc, Wad};
use http_kit::{ClientAddress, PathId, Problem, Shared};
use presentation::amounts;
use serde::{Deserialize, Serialize};
use store::credentials::Credential;
use store::owner_acts::OwnerAct;

use super::country::Country;
use super::form_body::{Base64Url, ScriptBody};
use super::session::{Member, problem_of};
use super::shell::{Reader, Section, Shell, answer, render};

/// The body of `POST /app/acts`: a kind and its fields, as the page's form sends them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActBody {
    kind: String,
    /// The API key to enable, or whose caps to raise.
    key: Option<String>,
    /// The owner to add or to remove, in hex.
    owner: Option<String>,
    /// The receiver of a withdrawal.
    to: Option<String>,
    /// Millionths of a USDC.
    amount: Option<String>,
    /// `all` withdraws everything that open trades have not reserved.
    how: Option<String>,
    /// The order of a trade: the market, the outcome and the side. Its amount is in millionths of a USDC
    /// to spend, or tokens with 18 decimals to sell, and its worst result in the other unit.
    market: Option<String>,
    outcome: Option<String>,
    side: Option<Side>,
    worst: Option<String>,
    /// Caps in millionths of a USDC.
    per_trade: Option<String>,
    daily: Option<String>,
}

impl ActBody {
    fn request(&self, person: &Person) -> Result<OwnerActRequest, AppError> {
        match self.kind.parse() {
            Ok(OwnerActKind::Enable) => {
                let key = person.caller()?.key.id;
                match (&self.per_trade, &self.daily) {
                    (Some(_), Some(_)) => Ok(OwnerActRequest::RaiseCaps { key, caps: self.caps()? }),
                    _ => Ok(OwnerActRequest::Enable { keys: vec![key] }),
                }
            }
            Ok(OwnerActKind::EnableKey) => Ok(OwnerActRequest::EnableKey { key: self.key()? }),
            Ok(OwnerActKind::RaiseCaps) => {
                Ok(OwnerActRequest::RaiseCaps { key: self.key()?, caps: self.caps()? })
            }
            Ok(OwnerActKind::Withdraw) => {
                Ok(OwnerActRequest::Withdraw { to: self.receiver()?, amount: self.amount()? })
            }
            Ok(OwnerActKind::AddOwner) => Ok(OwnerActRequest::AddOwner(self.owner()?)),
            Ok(OwnerActKind::RemoveOwner) => Ok(OwnerActRequest::RemoveOwner(self.owner()?)),
            Ok(OwnerActKind::EndApproval) => Ok(OwnerActRequest::EndApproval),
            Ok(OwnerActKind::Trade) => self.trade(),
            _ => Err(AppError::field("/kind", "must be the kind of a form of this site")),
        }
    }

    fn owner(&self) -> Result<AccountOwner, AppError> {
        owner_in(self.owner.as_deref().unwrap_or_default().trim())
    }

    fn key(&self) -> Result<KeyId, AppError> {
        let id = self.key.as_deref().unwrap_or_default();
        id.parse().map_err(|_| AppError::field("/key", "must be the id of a key"))
    }

    fn caps(&self) -> Result<Caps, AppError> {
        let cap = |pointer, text: &Option<String>| usdc_of(pointer, text.as_deref().unwrap_or_default());
        Ok(Caps { per_trade: cap("/perTrade", &self.per_trade)?, daily: cap("/daily", &self.daily)? })
    }

    fn trade(&self) -> Result<OwnerActRequest, AppError> {
        let market = self.market.as_deref().unwrap_or_default();
        let market_id = market.parse().map_err(|_| AppError::new(ErrorCode::MarketNotFound))?;
        let outcome = self.outcome.as_deref().and_then(|outcome| outcome.parse().ok());
        let outcome_index =
            outcome.ok_or_else(|| AppError::field("/outcome", "must be the index of an outcome"))?;
        let (amount, worst) =
            (self.amount.as_deref().unwrap_or_default(), self.worst.as_deref().unwrap_or_default());
        let order = match self.side {
            Some(Side::Buy) => {
                OwnerOrder::Buy { usdc: usdc_of("/amount", amount)?, min_tokens: tokens_of("/worst", worst)? }
            }
            Some(Side::Sell) => OwnerOrder::Sell {
                tokens: tokens_of("/amount", amount)?,
                min_usdc: usdc_of("/worst", worst)?,
            },
            None => return Err(AppError::field("/side", "must be buy or sell")),
        };
        Ok(OwnerActRequest::Trade { market_id, outcome_index, order })
    }

    fn receiver(&self) -> Result<Address, AppError> {
        address_in("/to", self.to.as_deref().unwrap_or_default().trim())
    }

    fn amount(&self) -> Result<WithdrawalAmount, AppError> {
        match self.how.as_deref() {
            Some("all") => Ok(WithdrawalAmount::All),
            _ => Ok(WithdrawalAmount::Exact(usdc_of("/amount", self.amount.as_deref().unwrap_or_default())?)),
        }
    }
}

/// Reads the address of a wallet, or x and y of a passkey.
pub fn owner_in(text: &str) -> Result<AccountOwner, AppError> {
    match text.parse() {
        Ok(owner @ AccountOwner::Passkey { .. }) => Ok(owner),
        _ => address_in("/owner", text).map(AccountOwner::Eoa),
    }
}

fn address_in(pointer: &str, text: &str) -> Result<Address, AppError> {
    // The checksum finds most typing errors. Addresses without capital letters have none.
    let has_checksum = text.chars().any(|letter| letter.is_ascii_uppercase());
    let parsed = match has_checksum {
        true => Address::parse_checksummed(text, None).ok(),
        false => text.parse().ok(),
    };
    parsed.ok_or_else(|| AppError::wrong_value(pointer, "must be an address with a valid checksum", text))
}

fn usdc_of(pointer: &str, text: &str) -> Result<Usdc, AppError> {
    let atomic = text.parse::<u64>().ok().filter(|atomic| *atomic <= i64::MAX as u64);
    let usdc = atomic.filter(|atomic| *atomic > 0).map(Usdc::from_atomic);
    usdc.ok_or_else(|| {
        AppError::wrong_value(pointer, "must be an amount above zero, in millionths of a USDC", text)
    })
}

fn tokens_of(pointer: &str, text: &str) -> Result<Wad, AppError> {
    // 128 bits hold every balance of tokens.
    let wad = text.parse::<u128>().ok().filter(|wad| *wad > 0).map(|wad| Wad(U256::from(wad)));
    wad.ok_or_else(|| {
        AppError::wrong_value(pointer, "must be an amount of tokens above zero, with 18 decimals", text)
    })
}

/// An owner who may sign.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum OwnerRecord {
    Passkey { credential_id: String },
    Wallet { address: Address },
}

/// A prepared act, with everything that the browser needs to check and sign it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PreparedRecord {
    id: OwnerActId,
    account: Address,
    chain_id: u64,
    nonce: String,
    deadline: String,
    calls: Vec<Call>,
    digest: B256,
    owners: Vec<OwnerRecord>,
    state: OwnerActStatus,
}

/// The state of an act.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActRecord {
    id: OwnerActId,
    kind: OwnerActKind,
    state: OwnerActStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_hash: Option<B256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ActRecord {
    fn new(act: &OwnerAct) -> Self {
        let reason = error_of(act).map(|error| error.detail);
        Self { id: act.id, kind: act.kind, state: act.status, tx_hash: act.tx_hash, reason }
    }
}

/// `POST /app/acts`.
pub async fn create(
    State(app): State<Shared>,
    Member(person): Member,
    Country(country): Country,
    ScriptBody(body): ScriptBody<ActBody>,
) -> Result<Response, Problem> {
    web(&app.ctx).map_err(|error| problem_of(error, app.ctx.now()))?;
    let request = body.request(&person)?;
    let actor = person.clone();
    let prepared = app
        .mutate(async move |app| Ok(people::prepare_act(&app.ctx, &actor, country, &request).await))
        .await?
        .map_err(|error| problem_of(error, app.ctx.now()))?;
    let PreparedAct { act, batch } = prepared;
    let record = PreparedRecord {
        id: act.id,
        account: batch.account,
        chain_id: app.ctx.chain.chain_id(),
        nonce: batch.nonce.to_string(),
        deadline: batch.deadline_s.to_string(),
        calls: batch.calls,
        digest: act.digest,
        owners: owners_of(&app, &person).await?,
        state: act.status,
    };
    Ok((StatusCode::CREATED, http_kit::json(&record)).into_response())
}

/// Returns the person's credentials that own the account now.
async fn owners_of(app: &Shared, person: &Person) -> Result<Vec<OwnerRecord>, Problem> {
    let owners = app::accounts::owners(&app.ctx, person.user_id()).await?.owners;
    let credentials = people::list_credentials(&app.ctx, person).await?;
    let record = |credential: &Credential| match owner_of(&credential.key) {
        owner if !owners.contains(&owner) => None,
        AccountOwner::Eoa(address) => Some(OwnerRecord::Wallet { address }),
        AccountOwner::Passkey { .. } => {
            let id = credential.passkey_id.as_deref()?;
            Some(OwnerRecord::Passkey { credential_id: super::sign_in::base64_url(id) })
        }
    };
    Ok(credentials.iter().filter_map(record).collect())
}

/// A passkey's signature over an act's digest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PasskeySignature {
    credential_id: Base64Url,
    authenticator_data: Base64Url,
    client_data_json: Base64Url,
    r: B256,
    s: B256,
}

/// A wallet's signature over the batch as typed data.
#[derive(Debug, Deserialize)]
struct WalletSignature {
    signature: Bytes,
}

/// The body of `POST /app/acts/{id}/signature`.
#[derive(Debug, Deserialize)]
pub struct SignatureBody {
    passkey: Option<PasskeySignature>,
    wallet: Option<WalletSignature>,
}

/// `POST /app/acts/{id}/signature`.
pub async fn add_signature(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
    ClientAddress(ip): ClientAddress,
    ScriptBody(body): ScriptBody<SignatureBody>,
) -> Result<Response, Problem> {
    let id: OwnerActId = id.parse().map_err(|_| Problem::not_found())?;
    let signature = match (body.passkey, body.wallet) {
        (Some(passkey), None) => of_passkey(&app, &person, passkey).await?,
        (None, Some(wallet)) => OwnerSignature::Wallet(wallet.signature),
        _ => return Err(AppError::field("", "must have either passkey or wallet").into()),
    };
    let user_id = person.user_id();
    // A browser that hangs up must not leave a signature half stored.
    let act = app
        .mutate(async move |app| sign(&app.ctx, user_id, id, &signature, ActOrigin::User(ip)).await)
        .await?;
    Ok(http_kit::json(&ActRecord::new(&act)))
}

async fn of_passkey(
    app: &Shared,
    person: &Person,
    signed: PasskeySignature,
) -> Result<OwnerSignature, Problem> {
    let credentials = people::list_credentials(&app.ctx, person).await?;
    let credential = credentials
        .iter()
        .find(|credential| credential.passkey_id.as_deref() == Some(&signed.credential_id.0));
    let unknown = || AppError::field("/passkey/credentialId", "must be a passkey of the account");
    let owner = owner_of(&credential.ok_or_else(unknown)?.key);
    let party = &web(&app.ctx).map_err(|error| problem_of(error, app.ctx.now()))?.party;
    let malformed = |_| AppError::field("/passkey/clientDataJson", "must be UTF-8");
    let assertion = Assertion {
        authenticator_data: signed.authenticator_data.0.into(),
        client_data_json: String::from_utf8(signed.client_data_json.0).map_err(malformed)?,
        r: signed.r,
        s: signed.s,
    };
    Ok(OwnerSignature::Passkey { owner, assertion, site: party.clone() })
}

/// `GET /app/acts/{id}`.
pub async fn find(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    Ok(http_kit::json(&ActRecord::new(&get(&app, &person, &id).await?)))
}

async fn get(app: &Shared, person: &Person, id: &str) -> Result<OwnerAct, Problem> {
    let id: OwnerActId = id.parse().map_err(|_| Problem::not_found())?;
    Ok(owner_acts::find(&app.ctx, person.user_id(), id).await?)
}

#[derive(Debug, Template)]
#[template(path = "site/act.html")]
struct ActPage {
    shell: Shell,
    id: String,
    heading: &'static str,
    /// Names and values of what the act does.
    facts: Vec<(&'static str, String)>,
    state: &'static str,
    badge: &'static str,
    is_open: bool,
    tx_hash: Option<String>,
    reason: Option<String>,
    at: String,
}

/// `GET /acts/{id}`: the receipt.
pub async fn receipt(
    State(app): State<Shared>,
    reader: Reader,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let act = get(&app, &person, &id).await?;
    let heading = heading_of(act.kind);
    let (state, badge) = match act.status {
        OwnerActStatus::Prepared => ("Waiting for your signature", "is-wait"),
        OwnerActStatus::Signed => ("Signed", "is-wait"),
        OwnerActStatus::Sent => ("Sent", "is-wait"),
        OwnerActStatus::Done => ("Done", "is-good"),
        OwnerActStatus::Failed => ("Failed", "is-bad"),
        OwnerActStatus::Expired => ("Expired", "is-bad"),
    };
    let page = ActPage {
        shell: Shell::new(&reader, Section::None, heading),
        id: act.id.to_string(),
        heading,
        facts: facts_of(&act)?,
        state,
        badge,
        is_open: matches!(act.status, OwnerActStatus::Signed | OwnerActStatus::Sent),
        tx_hash: act.tx_hash.map(|hash| format!("{hash:#x}")),
        reason: error_of(&act).map(|error| error.detail),
        at: amounts::minute(act.created_at),
    };
    Ok(answer(render(&page)?))
}

fn facts_of(act: &OwnerAct) -> Result<Vec<(&'static str, String)>, AppError> {
    let mut facts = Vec::new();
    if let Some((to, amount)) = withdrawal_of(act)? {
        facts.extend([("Amount", amounts::dollars(amount)), ("To", to.to_string())]);
    }
    let caps = [("Most for one trade", act.caps_per_trade), ("Most for one day", act.caps_daily)];
    facts.extend(caps.into_iter().filter_map(|(name, cap)| Some((name, amounts::dollars(cap?)))));
    Ok(facts)
}

const fn heading_of(kind: OwnerActKind) -> &'static str {
    match kind {
        OwnerActKind::Enable | OwnerActKind::EnableKey => "Trading enabled",
        OwnerActKind::RaiseCaps => "Limits changed",
        OwnerActKind::Withdraw => "Withdrawal",
        OwnerActKind::SendPosition => "Position sent",
        OwnerActKind::Trade => "Trade",
        OwnerActKind::AddOwner => "Owner added",
        OwnerActKind::RemoveOwner => "Owner removed",
        OwnerActKind::EndApproval => "Trading ended",
    }
}

/// The data that a page's form needs to check what it signs.
#[derive(Debug)]
pub struct ActForm {
    pub account: String,
    pub chain_id: u64,
    pub usdc: String,
    pub gate: String,
    pub hub: String,
    pub rp_id: String,
}

impl ActForm {
    pub fn new(app: &Shared, account: Address) -> Result<Self, Problem> {
        let contracts = app.ctx.chain.contracts();
        let settings = web(&app.ctx).map_err(|_| Problem::new(ErrorCode::ResourceNotFound))?;
        Ok(Self {
            account: account.to_string(),
            chain_id: app.ctx.chain.chain_id(),
            usdc: contracts.usdc.to_string(),
            gate: contracts.gate.to_string(),
            hub: contracts.hub.to_string(),
            rp_id: settings.party.id().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(to: &str, amount: &str) -> ActBody {
        ActBody {
            kind: "withdraw".to_owned(),
            key: None,
            owner: None,
            to: Some(to.to_owned()),
            amount: Some(amount.to_owned()),
            how: None,
            market: None,
            outcome: None,
            side: None,
            worst: None,
            per_trade: None,
            daily: None,
        }
    }

    #[test]
    fn a_receiver_with_a_wrong_checksum_is_rejected() {
        let right = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
        assert!(body(right, "1").receiver().is_ok());
        assert!(body(&right.to_lowercase(), "1").receiver().is_ok());
        assert!(body(&right.replace("d8dA", "d8DA"), "1").receiver().is_err());
        assert!(body("0x1234", "1").receiver().is_err() && body("", "1").receiver().is_err());
    }

    #[test]
    fn an_amount_is_a_positive_number_of_millionths() {
        let exact = |text: &str| body("", text).amount().ok();
        assert_eq!(exact("12500000"), Some(WithdrawalAmount::Exact(Usdc::from_atomic(12_500_000))));
        for wrong in ["0", "-1", "1.5", "", "99999999999999999999"] {
            assert_eq!(exact(wrong), None, "{wrong}");
        }
    }
}
