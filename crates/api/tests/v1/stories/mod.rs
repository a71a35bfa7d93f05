//! Client stories over several routes.

mod market_life;
mod restart;
mod settlement;
mod trading;
