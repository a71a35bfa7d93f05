//! Acts on users and their keys.

use domain::ErrorCode;
use domain::credential::Role;
use domain::ids::{KeyId, UserId};
use domain::key::{LimitOverrides, Tier};
use serde::{Deserialize, Serialize};
use store::keys::Key;
use store::users::User;

use super::summary::{Outcome, Summary};
use crate::{AppError, Ctx, keys, people};

/// An act on a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum PersonStep {
    Tier { user: UserId, tier: Tier },
    Role { user: UserId, role: Role },
    EndSessions { user: UserId },
}

impl PersonStep {
    const fn user(&self) -> UserId {
        match self {
            Self::Tier { user, .. } | Self::Role { user, .. } | Self::EndSessions { user } => *user,
        }
    }

    pub(super) async fn describe(&self, ctx: &Ctx, admin: UserId) -> Result<Summary, AppError> {
        let user = find(ctx, self.user()).await?;
        let summary = |title: &str| {
            Summary::new(format!("{title} {}", user.name), format!("/admin/users/{}", user.id))
                .fact("User", user.id)
        };
        Ok(match self {
            Self::Tier { tier, .. } => {
                let limits = tier.limits(&LimitOverrides::default());
                summary("Change the tier of")
                    .change("Tier", user.tier.as_str(), tier.as_str())
                    .fact("Limit per trade", format!("{} USDC", limits.per_trade.to_decimal()))
                    .fact("Limit per day", format!("{} USDC", limits.daily.to_decimal()))
                    .then("Changes the limits of the key that the user trades with in the web application.")
                    .then("The user must sign an act before higher limits apply on chain.")
            }
            Self::Role { role: Role::Admin, .. } => summary("Make an admin of")
                .change("Role", user.role.as_str(), Role::Admin.as_str())
                .then("The user can read everything in these pages, also about other users.")
                .then("The user can confirm every act of these pages with a passkey, also this one."),
            Self::Role { user: id, .. } if *id == admin => {
                return Err(AppError::new(ErrorCode::ValidationFailed)
                    .detail("You must not remove your own role here. Another admin can do it."));
            }
            Self::Role { role: Role::User, .. } => summary("Remove the role admin from")
                .change("Role", user.role.as_str(), Role::User.as_str())
                .then("The user can no longer open these pages. The account and its money stay the same."),
            Self::EndSessions { .. } => summary("End all sessions of")
                .then("Signs the user out in every browser within a second. The user can sign in again."),
        })
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        Ok(Outcome::done(match self {
            Self::Tier { user, tier } => {
                people::set_tier(ctx, user, tier).await?;
                format!("The user has the tier {}.", tier.as_str())
            }
            Self::Role { user, role } => {
                people::set_role(ctx, user, role).await?;
                format!("The user has the role {role}.")
            }
            Self::EndSessions { user } => {
                let ended = people::end_sessions(ctx, user).await?;
                format!("Ended sessions: {ended}.")
            }
        }))
    }
}

async fn find(ctx: &Ctx, id: UserId) -> Result<User, AppError> {
    let found = ctx.store.read(id, |tx, id| Box::pin(store::users::find(tx, *id)));
    let missing = || AppError::new(ErrorCode::ResourceNotFound).detail("There is no user with this id.");
    found.await?.ok_or_else(missing)
}

/// An act on a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum KeyStep {
    Pause { key: KeyId },
    Resume { key: KeyId },
    Revoke { key: KeyId },
}

impl KeyStep {
    const fn key(&self) -> KeyId {
        match self {
            Self::Pause { key } | Self::Resume { key } | Self::Revoke { key } => *key,
        }
    }

    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        let found = ctx.store.read(self.key(), |tx, id| Box::pin(store::keys::find(tx, *id)));
        let missing = || AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.");
        let key: Key = found.await?.ok_or_else(missing)?;
        let user = find(ctx, key.user_id).await?;
        let summary = |verb: &str| {
            Summary::new(
                format!("{verb} the key “{}” of {}", key.name, user.name),
                format!("/admin/users/{}", user.id),
            )
            .fact("Key", key.id)
            .maybe("Last characters", key.hint.as_ref())
        };
        let refuse = |detail: &str| Err(AppError::new(ErrorCode::ValidationFailed).detail(detail));
        if key.revoked_at.is_some() {
            return refuse("The key is revoked already.");
        }
        Ok(match self {
            Self::Pause { .. } if key.paused_at.is_some() => return refuse("The key is paused already."),
            Self::Resume { .. } if key.paused_at.is_none() => return refuse("The key is not paused."),
            Self::Pause { .. } => summary("Pause")
                .then("The key cannot create or confirm trades, in any process. Trades that wait to be signed are rejected.")
                .then("Reads still work. The holder can resume the key with a fresh confirmation: revoke it to stop it permanently."),
            Self::Resume { .. } => summary("Resume")
                .maybe("Paused since", key.paused_at)
                .then("The key can trade again within its limits. Its holder may have paused it for a reason: ask first."),
            Self::Revoke { .. } => summary("Revoke")
                .then("The key is rejected within a second, and its delegation on chain ends.")
                .then("A revoked key never works again. The user needs a new one."),
        })
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        Ok(Outcome::done(match self {
            Self::Pause { key } => {
                keys::pause_noted(ctx, key).await?;
                "The key is paused."
            }
            Self::Resume { key } => {
                keys::resume(ctx, key).await?;
                "The key can trade again."
            }
            Self::Revoke { key } => {
                keys::revoke(ctx, key).await?;
                "The key is revoked. The executor ends its delegation on chain."
            }
        }))
    }
}
