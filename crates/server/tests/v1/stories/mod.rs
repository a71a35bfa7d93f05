//! What a client lives through, over several routes.

mod market_life;
mod restart;
mod settlement;
mod trading;
