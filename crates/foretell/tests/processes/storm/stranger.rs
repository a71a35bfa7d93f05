//! A stranger with a little gas, who calls every public function of the contracts.

use alloy_primitives::{Address, Bytes, U256};
use chain::calls;
use domain::ids::MarketId;
use foretell::run::Parts;
use store::StoreError;
use testkit::{TestMarket, hub};

use crate::anvil::Anvil;
use crate::dice::Dice;

/// The stranger's account. Anvil signs for it.
const STRANGER: &str = "0x976ea74026e726554db657fa54763abd0c3a0aa9";

pub struct Stranger {
    hub: Address,
    /// A user's account.
    victim: Address,
    market: TestMarket,
}

impl Stranger {
    /// Creates a stranger with some USDC who knows a market and an account.
    pub async fn prepare(anvil: &Anvil, parts: &Parts) -> Self {
        let seen: Result<Option<(String, i64)>, StoreError> = parts
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(async move {
                    const SQL: &str =
                        "SELECT accounts.address, markets.chain_market_id FROM accounts, markets
                        ORDER BY chain_market_id";
                    tx.find(SQL, &[], |row| Ok((row.get("address")?, row.get("chain_market_id")?))).await
                })
            })
            .await;
        let (victim, number) = seen.unwrap().unwrap();
        let market = TestMarket { id: MarketId(parts.ctx.uuid()), number: number as u64 };
        let (chain, contracts) = (&parts.ctx.chain, parts.ctx.chain.contracts());
        let minter = parts.secrets.roles.deployer().unwrap();
        let funds = calls::mint(STRANGER.parse().unwrap(), U256::from(1_000_000_000u64));
        chain.transact(&minter, Some(contracts.usdc), funds).await.unwrap();
        anvil.send_as(STRANGER, contracts.usdc, &calls::approve(contracts.hub, U256::MAX)).await;
        Self { hub: contracts.hub, victim: victim.parse().unwrap(), market }
    }

    /// Sends a few calls. Those that the contracts reject change nothing.
    pub async fn play(&self, anvil: &Anvil, dice: &mut Dice) {
        for _ in 0..=dice.roll(8) {
            let data = self.call(dice);
            anvil.send_as(STRANGER, self.hub, &data).await;
        }
    }

    fn call(&self, dice: &mut Dice) -> Bytes {
        let stranger: Address = STRANGER.parse().unwrap();
        let id = self.token(dice);
        let other = Address::with_last_byte(dice.roll(4) as u8);
        let amount = U256::from(dice.roll(3) * 1_000);
        let number = self.market.number;
        match dice.roll(9) {
            0 | 1 => hub::transfer_id(other, id, amount),
            2 => hub::transfer_from(self.victim, other, id, U256::ZERO),
            3 => hub::transfer_from(stranger, stranger, id, amount),
            4 => hub::approve(other, id, amount),
            5 => hub::set_operator(other, dice.roll(2) == 0),
            6 => calls::redeem(self.victim, number, 0),
            7 => hub::buy(self.market, dice.roll(2) as u8, domain::Usdc::from_atomic(dice.roll(1_000_000))),
            _ => hub::sell(self.market, dice.roll(2) as u8, U256::from(dice.roll(1_000_000_000))),
        }
    }

    /// Returns a token id: of the market, of another one, of none, or one that no client can
    /// decode.
    fn token(&self, dice: &mut Dice) -> U256 {
        match dice.roll(5) {
            0 => chain::token_id(self.market.number, 0),
            1 => chain::token_id(self.market.number, 200),
            2 => chain::token_id(self.market.number + 1_000, 1),
            3 => (U256::ONE << 200) | U256::from(0x100),
            _ => U256::MAX - U256::from(dice.roll(1 << 30)),
        }
    }
}
