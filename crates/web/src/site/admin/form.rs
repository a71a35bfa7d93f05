//! The requests that the forms of the operators' pages make.

use alloy_primitives::U256;
use app::admin::{
    AdminRequest, ImportFile, KeyStep, ListingEdit, MarketMove, MarketTerms, NewTerms, PersonStep,
    ServiceStep, ThreadEdit,
};
use app::kill_switches::TRADING;
use app::{AppError, Ctx};
use domain::ids::{MarketId, ThreadId};
use domain::trade::FieldError;
use domain::{Timestamp, Usdc, Wad};
use http_kit::Shared;

use crate::site::form_body::FormFields;

/// Reads the act of a form.
///
/// # Errors
/// `VALIDATION_FAILED` with all wrong fields.
pub fn request_of(app: &Shared, fields: &FormFields) -> Result<AdminRequest, AppError> {
    let market = || parsed::<MarketId>(fields, "market", "must be the id of a market");
    let user = || parsed(fields, "user", "must be the id of a user");
    let key = || parsed(fields, "key", "must be the id of a key");
    Ok(match fields.get("act") {
        "create-market" => AdminRequest::CreateMarket(new_market(&app.ctx, fields)?),
        "edit-market" => AdminRequest::EditMarket(ListingEdit {
            market_id: market()?,
            description: optional(fields, "description"),
            category: optional(fields, "category"),
            tags: list(fields, "tags"),
            source_url: optional(fields, "source_url"),
            thread_id: maybe(fields, "thread", "must be the id of a thread")?,
            chapter_id: optional(fields, "chapter"),
            featured_position: maybe(fields, "featured", "must be a number from 0")?,
        }),
        "freeze" => AdminRequest::MoveMarket(MarketMove::Freeze { market: market()? }),
        "unfreeze" => AdminRequest::MoveMarket(MarketMove::Unfreeze { market: market()? }),
        "open" => AdminRequest::MoveMarket(MarketMove::Open { market: market()? }),
        "veto" => AdminRequest::MoveMarket(MarketMove::Veto { market: market()? }),
        "finalize" => AdminRequest::MoveMarket(MarketMove::Finalize { market: market()? }),
        "cancel" => AdminRequest::MoveMarket(MarketMove::Cancel {
            market: market()?,
            reason: optional(fields, "reason"),
        }),
        "resolve" => AdminRequest::MoveMarket(MarketMove::Resolve {
            market: market()?,
            payouts: payouts(fields)?,
            source: optional(fields, "source"),
        }),
        "tier" => {
            let tier = parsed(fields, "tier", "must be free, developer, enterprise or mm")?;
            AdminRequest::Person(PersonStep::Tier { user: user()?, tier })
        }
        "role" => {
            let role = parsed(fields, "role", "must be user or admin")?;
            AdminRequest::Person(PersonStep::Role { user: user()?, role })
        }
        "end-sessions" => AdminRequest::Person(PersonStep::EndSessions { user: user()? }),
        "pause-key" => AdminRequest::Key(KeyStep::Pause { key: key()? }),
        "resume-key" => AdminRequest::Key(KeyStep::Resume { key: key()? }),
        "revoke-key" => AdminRequest::Key(KeyStep::Revoke { key: key()? }),
        "switch" => AdminRequest::Service(switch(app, fields)?),
        "release" => AdminRequest::Service(ServiceStep::Release { market: market()? }),
        "retry-webhooks" => AdminRequest::Service(ServiceStep::RetryWebhooks { key: key()? }),
        "thread" => AdminRequest::Thread(ThreadEdit {
            id: maybe(fields, "thread", "must be the id of a thread")?
                .unwrap_or_else(|| ThreadId(app.ctx.uuid())),
            title: fields.get("title").trim().to_owned(),
            description: optional(fields, "description"),
            category: optional(fields, "category"),
            tags: list(fields, "tags"),
            image: optional(fields, "image"),
            organization_id: maybe(fields, "organization", "must be the id of an organization")?,
            partner_id: maybe(fields, "partner", "must be the id of a partner")?,
        }),
        "import" => AdminRequest::Import(ImportFile {
            text: fields.get("text").to_owned(),
            is_json: fields.get("format") == "json",
        }),
        _ => return Err(AppError::field("/act", "must be an act of these pages")),
    })
}

fn optional(fields: &FormFields, name: &str) -> Option<String> {
    // Browsers send line ends as CR LF.
    Some(fields.get(name).trim().replace("\r\n", "\n")).filter(|text| !text.is_empty())
}

fn parsed<T: std::str::FromStr>(fields: &FormFields, name: &str, requirement: &str) -> Result<T, AppError> {
    let text = fields.get(name).trim();
    text.parse().map_err(|_| AppError::wrong_value(&format!("/{name}"), requirement, text))
}

fn maybe<T: std::str::FromStr>(
    fields: &FormFields,
    name: &str,
    requirement: &str,
) -> Result<Option<T>, AppError> {
    if fields.get(name).trim().is_empty() { Ok(None) } else { parsed(fields, name, requirement).map(Some) }
}

/// Reads a list that is separated by commas.
fn list(fields: &FormFields, name: &str) -> Vec<String> {
    let items = fields.get(name).split(',').map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn switch(app: &Shared, fields: &FormFields) -> Result<ServiceStep, AppError> {
    let name = fields.get("name").trim();
    if name != TRADING && !app.switchable_routes.iter().any(|route| route == name) {
        return Err(AppError::wrong_value("/name", "must be a route that can be switched off", name));
    }
    let is_off = match fields.get("state") {
        "off" => true,
        "on" => false,
        other => return Err(AppError::wrong_value("/state", "must be on or off", other)),
    };
    let reason = optional(fields, "reason").unwrap_or_default();
    Ok(ServiceStep::Switch { name: name.to_owned(), is_off, reason })
}

/// Reads a share of at most 100 percent, such as `62.5`, in WAD.
fn percentage(text: &str) -> Option<U256> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 3 || fraction.len() > 16 || !is_digits(whole) || !is_digits(fraction)
    {
        return None;
    }
    // A percent has 16 decimals.
    let padded = format!("{whole}{fraction:0<16}");
    let wad = padded.parse::<u128>().ok().map(U256::from)?;
    (wad <= Wad::ONE.0).then_some(wad)
}

/// Reads the winner, or the percentages that the outcomes pay.
fn payouts(fields: &FormFields) -> Result<Vec<U256>, AppError> {
    let shares: Vec<&str> = fields.all("payout").map(str::trim).collect();
    let winner = fields.get("winner");
    if winner == "shares" {
        let read = |text: &&str| percentage(if text.is_empty() { "0" } else { text });
        let all: Option<Vec<U256>> = shares.iter().map(read).collect();
        return all.ok_or_else(|| AppError::field("/payouts", "must be percentages, such as 50 or 33.3"));
    }
    let index: usize = winner
        .parse()
        .ok()
        .filter(|index| *index < shares.len())
        .ok_or_else(|| AppError::field("/winner", "must be an outcome of the market"))?;
    Ok((0..shares.len()).map(|at| if at == index { Wad::ONE.0 } else { U256::ZERO }).collect())
}

fn new_market(ctx: &Ctx, fields: &FormFields) -> Result<MarketTerms, AppError> {
    let mut wrong = Vec::new();
    let outcomes: Vec<String> = fields
        .get("outcomes")
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let opening_odds: Vec<U256> = list(fields, "odds")
        .iter()
        .map(|text| {
            percentage(text).unwrap_or_else(|| {
                let requirement = "must be percentages, such as 60, 40";
                wrong.push(FieldError::new("/openingOdds", requirement).got(text));
                U256::ZERO
            })
        })
        .collect();
    let liquidity = fields.get("liquidity").trim().parse::<Usdc>().unwrap_or_else(|_| {
        let requirement = "must be an amount in USDC, such as 1000";
        wrong.push(FieldError::new("/liquidity", requirement).got(fields.get("liquidity")));
        Usdc::from_whole(1)
    });
    let fee_bps = percentage(fields.get("fee").trim())
        .and_then(|fee| u16::try_from(fee / U256::from(100_000_000_000_000_u64)).ok())
        .unwrap_or_else(|| {
            wrong
                .push(FieldError::new("/feeBps", "must be a percentage, such as 1.5").got(fields.get("fee")));
            0
        });
    let end_time = minute_of(fields.get("end_time")).unwrap_or_else(|| {
        wrong.push(FieldError::new("/endTime", "must be a date and a time").got(fields.get("end_time")));
        ctx.now()
    });
    if !wrong.is_empty() {
        return Err(AppError::validation(&wrong));
    }
    Ok(MarketTerms {
        id: maybe(fields, "market", "must be the id of a market")?.unwrap_or_else(|| MarketId(ctx.uuid())),
        terms: NewTerms {
            question: fields.get("question").trim().to_owned(),
            outcomes,
            opening_odds,
            liquidity_usdc_atomic: liquidity.atomic(),
            fee_bps,
            end_time,
            description: optional(fields, "description"),
            category: optional(fields, "category"),
            tags: list(fields, "tags"),
            source_url: optional(fields, "source_url"),
            thread_id: maybe(fields, "thread", "must be the id of a thread")?,
            chapter_id: optional(fields, "chapter"),
            featured_position: maybe(fields, "featured", "must be a number from 0")?,
        },
    })
}

/// Reads the value of a field for a date and a time, in UTC, such as `2027-01-31T18:00`.
fn minute_of(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let seconds = if text.len() == 16 { ":00Z" } else { "Z" };
    text.parse().or_else(|_| format!("{text}{seconds}").parse()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> FormFields {
        FormFields::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn percentages_are_exact_and_at_most_one_hundred() {
        assert_eq!(percentage("100"), Some(Wad::ONE.0));
        assert_eq!(percentage("62.5"), Some(U256::from(625_000_000_000_000_000_u64)));
        assert_eq!(percentage("0.0000000000000001"), Some(U256::from(1)));
        for wrong in ["", "-1", "+1", "100.1", "1e2", ".5", "1000", "0.00000000000000001", "٣"] {
            assert_eq!(percentage(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_winner_gets_everything_and_shares_are_as_written() {
        let half = Wad::ONE.0 / U256::from(2);
        assert_eq!(payouts(&fields("winner=1&payout=&payout=")).ok(), Some(vec![U256::ZERO, Wad::ONE.0]));
        assert_eq!(payouts(&fields("winner=shares&payout=50&payout=50")).ok(), Some(vec![half, half]));
        for wrong in ["winner=2&payout=&payout=", "payout=&payout=", "winner=shares&payout=x&payout=1"] {
            assert!(payouts(&fields(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let at = |text: &str| minute_of(text).map(|at| at.to_string());
        assert_eq!(at("2027-01-31T18:00").as_deref(), Some("2027-01-31T18:00:00.000Z"));
        assert_eq!(at("2027-01-31T18:00:30Z").as_deref(), Some("2027-01-31T18:00:30.000Z"));
        assert_eq!(at("tomorrow"), None);
    }
}
