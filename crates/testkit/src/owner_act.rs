//! Acts of account owners.

use app::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerSignature, PreparedAct};
use chain::Signer;
use domain::ids::OwnerActId;
use store::owner_acts::OwnerAct;

use crate::{CLIENT_IP, TestApp, TestUser};

impl TestApp {
    /// Prepares an act of the user.
    pub async fn prepare_act(&self, user: &TestUser, request: &OwnerActRequest) -> PreparedAct {
        owner_acts::prepare(&self.ctx, user.id, request, ActOrigin::User(CLIENT_IP), None).await.unwrap()
    }

    /// Prepares an act and signs it with the key of the account's first owner.
    pub async fn signed_act(&self, user: &TestUser, request: &OwnerActRequest) -> OwnerAct {
        let PreparedAct { act, .. } = self.prepare_act(user, request).await;
        let signature = wallet_signature(&user.owner, &act);
        owner_acts::sign(&self.ctx, user.id, act.id, &signature, ActOrigin::User(CLIENT_IP)).await.unwrap()
    }

    /// Prepares and signs an act, and runs the executors.
    pub async fn act(&self, user: &TestUser, request: &OwnerActRequest) -> OwnerAct {
        let act = self.signed_act(user, request).await;
        self.workers.execute(&self.ctx).await;
        self.stored_act(act.id).await
    }

    /// Returns a stored act.
    pub async fn stored_act(&self, id: OwnerActId) -> OwnerAct {
        let found = self.ctx.store.read(id, |tx, id| Box::pin(store::owner_acts::find(tx, *id))).await;
        found.unwrap().expect("the act is stored")
    }
}

/// Signs an act with a wallet.
pub fn wallet_signature(owner: &Signer, act: &OwnerAct) -> OwnerSignature {
    OwnerSignature::Wallet(owner.sign_digest(act.digest).unwrap())
}
