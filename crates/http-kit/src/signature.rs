//! The optional request signature `X-Service-Signature`. It is verified over the raw body before
//! the body is parsed.

use app::{AppError, Ctx};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};
use domain::ErrorCode;
use domain::signature::{SignatureHeader, SignatureRefusal, SignedRequest};
use store::keys::Key;

use super::body::collect;
use super::rate::address_of;

const X_SERVICE_SIGNATURE: HeaderName = HeaderName::from_static("x-service-signature");

/// Rejects a request whose signature is not valid for the plaintext key `secret`. A request without
/// a signature passes unchanged. The body is read once and put back for the handler.
pub(super) async fn check(request: &mut Request, secret: &str, key: &Key, ctx: &Ctx) -> Result<(), AppError> {
    let Some(text) = header(request.headers()) else { return Ok(()) };
    let invalid = |why: SignatureRefusal| {
        AppError::new(ErrorCode::RequestSignatureInvalid).of_key(key.id).detail(why.to_string())
    };
    let text = text.map_err(invalid)?;
    // Check the header and its timestamp before waiting for the body.
    let signature = SignatureHeader::read(&text, ctx.now()).map_err(invalid)?;
    let sent = std::mem::replace(request.body_mut(), Body::empty());
    let body = collect(ctx.budgets(), address_of(request), request.headers(), sent).await?;
    let (method, path) = (request.method().as_str(), request.uri().path());
    signature.verify(secret, SignedRequest { method, path, body: &body }).map_err(invalid)?;
    *request.body_mut() = Body::from(body);
    Ok(())
}

/// Returns the signature header, if there is one. It may be sent only once.
fn header(headers: &HeaderMap) -> Option<Result<String, SignatureRefusal>> {
    let mut values = headers.get_all(X_SERVICE_SIGNATURE).iter();
    let first = values.next()?.to_str().map(str::to_owned);
    Some(first.ok().filter(|_| values.next().is_none()).ok_or(SignatureRefusal::Malformed))
}
