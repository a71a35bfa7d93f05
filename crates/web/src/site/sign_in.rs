//! Signing up, signing in and signing out.

use alloy_primitives::{Address, Bytes};
use app::passkeys::{NewCredential, Proof, WalletProof, issue_challenge, wallet_text, web};
use app::people::{self, SignUp};
use app::sample_users;
use app::sessions::{self, SignedIn};
use askama::Template;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use domain::ids::AdminActId;
use domain::passkey::{Assertion, Challenge, ChallengePurpose, Registration};
use http_kit::{ClientAddress, Parameters, Problem, Query, RawQuery, Shared, Visitor, WebCode};
use serde::{Deserialize, Serialize};

use super::country::Country;
use super::form_body::{Base64Url, FormFields, ScriptBody};
use super::session::{Member, cookie_of, device_of, ended_cookie, problem_of};
use super::shell::{Reader, Section, Shell, answer, render};

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
const NO_STORE: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
/// The page after signing in, and the one after signing up.
const NEXT: &str = "/portfolio";
const WELCOME: &str = "/welcome";

#[derive(Debug, Template)]
#[template(path = "site/sign_up.html")]
struct SignUpPage {
    shell: Shell,
    /// URL of the terms of use.
    terms_url: Option<String>,
    /// The operator refuses the reader's country.
    is_refused: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/sign_in.html")]
struct SignInPage {
    shell: Shell,
    /// The page after signing in.
    next: String,
    /// Ids and names of the sample users of a demonstration.
    sample_users: Vec<(String, String)>,
}

/// `GET /sign-up`.
pub async fn sign_up_page(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    let settings = web(&app.ctx).map_err(|error| problem_of(error, app.ctx.now()))?;
    let shell = Shell::new(&reader, Section::None, "Create your account");
    let (terms_url, is_refused) = (settings.terms_url.clone(), reader.country.0.is_refused);
    Ok(answer(render(&SignUpPage { shell, terms_url, is_refused })?))
}

/// The parameter `next`: the page that a reader without a session asked for.
#[derive(Debug)]
pub struct SignInQuery {
    next: Option<String>,
}

impl Parameters for SignInQuery {
    const NAMES: &'static [&'static str] = &["next"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { next: given.text("next") })
    }
}

impl SignInQuery {
    /// Returns the path to continue at, only if it is one of this site.
    fn next(self) -> String {
        // `//host` would be another site.
        let is_own = |path: &String| {
            path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n', '\t'])
        };
        self.next.filter(is_own).unwrap_or_else(|| NEXT.to_owned())
    }
}

/// `GET /sign-in`.
pub async fn sign_in_page(
    State(app): State<Shared>,
    reader: Reader,
    Query(query): Query<SignInQuery>,
) -> Result<Response, Problem> {
    web(&app.ctx).map_err(|error| problem_of(error, app.ctx.now()))?;
    let shell = Shell::new(&reader, Section::None, "Sign in");
    let sample_users = app.ctx.config.sample_users.iter();
    let sample_users = sample_users.map(|user| (user.user_id.to_string(), user.name.clone())).collect();
    Ok(answer(render(&SignInPage { shell, next: query.next(), sample_users })?))
}

/// The purposes of challenges that scripts may ask for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Purpose {
    SignUp,
    SignIn,
    StepUp,
    AddSignInKey,
    WalletSignIn,
    /// To confirm an act of the operators' pages.
    AdminAct,
}

/// The body of `POST /app/challenges`.
#[derive(Debug, Deserialize)]
pub struct ChallengeRequest {
    purpose: Purpose,
    /// The wallet that will sign.
    address: Option<Address>,
    /// The account that a wallet asks to sign in to, by name.
    account: Option<Address>,
    /// The act that an admin confirms.
    act: Option<AdminActId>,
}

/// A challenge for a passkey or a wallet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChallengeRecord {
    /// The challenge itself: it names itself in the answer.
    id: String,
    challenge: String,
    rp_id: String,
    user_handle: String,
    /// The text that the wallet must sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// `POST /app/challenges`.
pub async fn challenge(
    State(app): State<Shared>,
    Visitor(person): Visitor,
    ScriptBody(request): ScriptBody<ChallengeRequest>,
) -> Result<Response, Problem> {
    let ctx = &app.ctx;
    let failed = |error| problem_of(error, ctx.now());
    let purpose = match request.purpose {
        Purpose::SignUp => ChallengePurpose::SignUp,
        Purpose::SignIn | Purpose::WalletSignIn => ChallengePurpose::SignIn,
        Purpose::StepUp => ChallengePurpose::StepUp,
        Purpose::AddSignInKey => ChallengePurpose::AddKey,
        Purpose::AdminAct => ChallengePurpose::Admin,
    };
    let user_id = match purpose {
        ChallengePurpose::SignUp | ChallengePurpose::SignIn => None,
        _ => Some(person.as_ref().ok_or(WebCode::SignedOut)?.user_id()),
    };
    let (challenge, text) = match (purpose, person, request.act) {
        // The act has its own challenge, which contains its hash.
        (ChallengePurpose::Admin, Some(person), Some(act)) => {
            person.require_admin(ctx).map_err(failed)?;
            (app::admin::find(ctx, &person, act).await?.challenge, None)
        }
        (ChallengePurpose::Admin, ..) => return Err(Problem::not_found()),
        _ => {
            let issued = issue_challenge(ctx, purpose, user_id).await.map_err(failed)?;
            let text = match request.address {
                Some(address) => {
                    Some(wallet_text(ctx, &issued, address, request.account).await.map_err(failed)?)
                }
                None => None,
            };
            (issued.challenge, text)
        }
    };
    let id = challenge.to_string();
    let record = ChallengeRecord {
        challenge: id.clone(),
        rp_id: web(ctx).map_err(failed)?.party.id().to_owned(),
        // The verifier derives it from the challenge again.
        user_handle: base64_url(&challenge.user_handle()),
        id,
        text,
    };
    Ok((StatusCode::CREATED, [NO_STORE], http_kit::json(&record)).into_response())
}

pub fn base64_url(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// A passkey's answer: a registration or an assertion.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PasskeyAnswer {
    id: Base64Url,
    client_data_json: Base64Url,
    authenticator_data: Base64Url,
    /// x and y, of a registration.
    public_key: Option<Bytes>,
    #[serde(default)]
    transports: Vec<String>,
    /// DER, of an assertion.
    signature: Option<Base64Url>,
    user_handle: Option<Base64Url>,
}

/// A wallet's answer.
#[derive(Debug, Deserialize)]
struct WalletAnswer {
    address: Address,
    /// The account that the signed text names, if it names one.
    account: Option<Address>,
    signature: Bytes,
}

/// The body of `POST /app/sign-up`, `/app/sign-in` and `/app/step-up`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    challenge_id: String,
    name: Option<String>,
    passkey: Option<PasskeyAnswer>,
    wallet: Option<WalletAnswer>,
    /// The account that the person chose, of several that the wallet signs in to.
    account: Option<Address>,
    /// URL of the accepted terms of use.
    terms: Option<String>,
}

impl Credentials {
    fn wallet_proof(&self, wallet: &WalletAnswer) -> Result<WalletProof, Problem> {
        let challenge: Challenge = self.challenge_id.parse().map_err(|_| WebCode::ChallengeUnusable)?;
        let WalletAnswer { address, account, signature } = wallet;
        Ok(WalletProof { challenge, address: *address, account: *account, signature: signature.clone() })
    }

    /// Returns the name that the person gave the new key.
    pub fn name(&self) -> Option<String> {
        self.name.clone()
    }

    pub fn registration(&self) -> Result<NewCredential, Problem> {
        match (&self.passkey, &self.wallet) {
            (Some(answer), None) => Ok(NewCredential::Passkey(Registration {
                credential_id: answer.id.0.clone(),
                authenticator_data: answer.authenticator_data.0.clone(),
                client_data_json: answer.client_data_json.0.clone(),
                public_key: answer.public_key.as_ref().map(|key| key.to_vec()).unwrap_or_default(),
                transports: answer.transports.clone(),
            })),
            (None, Some(wallet)) => Ok(NewCredential::Wallet(self.wallet_proof(wallet)?)),
            _ => Err(one_answer()),
        }
    }

    pub fn proof(&self) -> Result<Proof, Problem> {
        match (&self.passkey, &self.wallet) {
            (Some(answer), None) => Ok(Proof::Passkey(Assertion {
                credential_id: answer.id.0.clone(),
                authenticator_data: answer.authenticator_data.0.clone(),
                client_data_json: answer.client_data_json.0.clone(),
                signature: answer.signature.clone().unwrap_or_default().0,
                user_handle: answer.user_handle.clone().map(|handle| handle.0),
            })),
            (None, Some(wallet)) => Ok(Proof::Wallet(self.wallet_proof(wallet)?)),
            _ => Err(one_answer()),
        }
    }
}

fn one_answer() -> Problem {
    app::AppError::field("", "must have either passkey or wallet").into()
}

/// The next page.
#[derive(Debug, Serialize)]
struct NextRecord {
    next: &'static str,
}

fn lead_to(next: &'static str, signed_in: &SignedIn) -> Result<Response, Problem> {
    let cookie = cookie_of(signed_in)?;
    Ok(([(SET_COOKIE, cookie), NO_STORE], http_kit::json(&NextRecord { next })).into_response())
}

/// `POST /app/sign-up`.
pub async fn sign_up(
    State(app): State<Shared>,
    headers: HeaderMap,
    address: ClientAddress,
    Country(country): Country,
    ScriptBody(body): ScriptBody<Credentials>,
) -> Result<Response, Problem> {
    let device = device_of(&headers, address);
    let credential = body.registration()?;
    let wanted = SignUp { name: body.name, credential, device, country, accepted_terms: body.terms };
    // A browser that hangs up must not leave a passkey without a user.
    let signed_in = app.mutate(async move |app| Ok(people::sign_up(&app.ctx, &wanted).await)).await?;
    lead_to(WELCOME, &signed_in.map_err(|error| problem_of(error, app.ctx.now()))?)
}

/// `POST /app/sign-in`.
pub async fn sign_in(
    State(app): State<Shared>,
    headers: HeaderMap,
    address: ClientAddress,
    ScriptBody(body): ScriptBody<Credentials>,
) -> Result<Response, Problem> {
    let device = device_of(&headers, address);
    let signed_in = sessions::sign_in(&app.ctx, &body.proof()?, body.account, &device).await;
    lead_to(NEXT, &signed_in.map_err(|error| problem_of(error, app.ctx.now()))?)
}

/// `POST /sign-in/sample`: signs in as a user of the demonstration.
pub async fn sign_in_as_sample(
    State(app): State<Shared>,
    headers: HeaderMap,
    address: ClientAddress,
    form: FormFields,
) -> Result<Response, Problem> {
    let device = device_of(&headers, address);
    let user_id = form.get("user").parse().map_err(|_| Problem::new(ErrorCode::ResourceNotFound))?;
    let signed_in = sample_users::sign_in(&app.ctx, user_id, &device).await;
    let cookie = cookie_of(&signed_in.map_err(|error| problem_of(error, app.ctx.now()))?)?;
    let next = (LOCATION, HeaderValue::from_static(NEXT));
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), next, NO_STORE]).into_response())
}

/// `POST /app/step-up`.
pub async fn step_up(
    State(app): State<Shared>,
    Member(person): Member,
    headers: HeaderMap,
    address: ClientAddress,
    ScriptBody(body): ScriptBody<Credentials>,
) -> Result<Response, Problem> {
    let device = device_of(&headers, address);
    let renewed = sessions::step_up(&app.ctx, &person, &body.proof()?, &device).await;
    lead_to(NEXT, &renewed.map_err(|error| problem_of(error, app.ctx.now()))?)
}

/// `POST /sign-out`: a form, so that signing out works without scripts.
pub async fn sign_out(State(app): State<Shared>, Visitor(person): Visitor) -> Result<Response, Problem> {
    if let Some(person) = person {
        sessions::sign_out(&app.ctx, &person).await.map_err(|error| problem_of(error, app.ctx.now()))?;
    }
    let home = (LOCATION, HeaderValue::from_static("/"));
    // Older copies, and pages in the back-forward cache. Browsers ignore it over http, except on this
    // machine.
    let forget = (CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\""));
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, ended_cookie()?), home, forget]).into_response())
}
