//! Example requests and responses of the trading API's OpenAPI document.

use serde_json::Value;

/// An example. `place` is `request` or a response status.
struct Example {
    operation: &'static str,
    place: &'static str,
    name: &'static str,
    summary: &'static str,
    json: &'static str,
}

/// Builds the list from entries of the form `operation place name "summary" "file";`.
macro_rules! examples {
    ($($operation:ident $place:literal $name:ident $summary:literal $file:literal;)*) => {
        &[$(Example {
            operation: stringify!($operation),
            place: $place,
            name: stringify!($name),
            summary: $summary,
            json: include_str!(concat!("examples/", $file, ".json")),
        },)*]
    };
}

static EXAMPLES: &[Example] = examples! {
    getHealth "200" lives "The process is alive" "getHealth.200";
    getReadiness "200" ready "Everything answers" "getReadiness.200";
    getReadiness "503" unavailable "The chain does not answer" "getReadiness.503";
    listMarkets "200" page "A page" "listMarkets.200";
    getMarket "200" traded "A market with trades" "getMarket.200";
    getQuote "200" buy "A buy of 25 USDC" "getQuote.200.buy";
    getQuote "200" sell "A sale, counted in tokens" "getQuote.200.sell";
    listPredictions "200" page "A page" "listPredictions.200";
    createTrade "request" buy "A buy of 25 USDC" "createTrade.request.buy";
    createTrade "request" sellAll "A sale of everything" "createTrade.request.sellAll";
    createTrade "request" dryRun "A dry run" "createTrade.request.dryRun";
    createTrade "201" pending "A new trade" "createTrade.201";
    createTrade "200" found "Found by its clientRequestId" "createTrade.200.found";
    createTrade "200" dryRun "The result of a dry run" "createTrade.200.dryRun";
    createTrade "202" held "A high-value trade" "createTrade.202";
    createTrades "request" two "Two trades" "createTrades.request.two";
    createTrades "200" partly "One trade is created, one is rejected" "createTrades.200";
    confirmTrade "request" token "The token of the 202 response" "confirmTrade.request";
    confirmTrade "200" released "A confirmed trade" "confirmTrade.200";
    getTrace "200" completed "A trade that was held, confirmed and completed" "getTrace.200";
    listEvents "200" page "The events of a held and completed trade" "listEvents.200";
    listTrades "200" page "A page" "listTrades.200";
    getTrade "200" completed "A completed trade" "getTrade.200.completed";
    getTrade "200" rejected "A rejected trade" "getTrade.200.rejected";
    getPortfolio "200" portfolio "A portfolio" "getPortfolio.200";
    listPositions "200" positions "Two positions" "listPositions.200";
    getMarketHistory "200" hour "Two hours, one of them with trades" "getMarketHistory.200";
    createRedemption "request" winner "A winning outcome" "createRedemption.request";
    createRedemption "201" pending "A new claim" "createRedemption.201";
    createRedemption "200" paid "A paid claim" "getRedemption.200";
    listRedemptions "200" page "A page" "listRedemptions.200";
    getRedemption "200" paid "A paid claim" "getRedemption.200";
    listWebhookEvents "200" page "A page" "listWebhookEvents.200";
    getWebhookEvent "200" retrying "An event that is being retried" "getWebhookEvent.200";
    redeliverWebhookEvent "request" nothing "An empty object" "pauseKey.request";
    redeliverWebhookEvent "200" queued "A redelivery" "redeliverWebhookEvent.200";
    sendTestWebhook "request" nothing "An empty object" "pauseKey.request";
    sendTestWebhook "200" queued "A test event" "sendTestWebhook.200";
    getWebhookEndpoint "200" spared "A receiver with an open breaker" "getWebhookEndpoint.200";
    rotateWebhookSecret "request" nothing "An empty object" "pauseKey.request";
    rotateWebhookSecret "200" rotated "A new secret" "rotateWebhookSecret.200";
    pauseKey "request" nothing "An empty object" "pauseKey.request";
    pauseKey "200" paused "A paused key" "pauseKey.200";
    getUsage "200" usage "A key with trades" "getUsage.200";
    getAccountReadiness "200" ready "A key that can trade" "getAccountReadiness.200.ready";
    getAccountReadiness "200" new "A key of a user without an account" "getAccountReadiness.200.new";
    getKey "200" key "A key with an allowlist" "getKey.200";
    getSandboxClock "200" clock "The time of the service" "getSandboxClock.200";
    moveSandboxClock "request" advance "Six minutes forward" "moveSandboxClock.request.advance";
    moveSandboxClock "request" to "To a time" "moveSandboxClock.request.to";
    moveSandboxClock "200" moved "The new time" "getSandboxClock.200";
};

/// Returns the name, summary and value of each example of `operation` at `place`.
pub fn of(operation: &str, place: &str) -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    EXAMPLES.iter().filter(move |example| example.operation == operation && example.place == place).map(
        |example| (example.name, example.summary, serde_json::from_str(example.json).unwrap_or_default()),
    )
}

/// Returns the operations and places that have examples.
#[cfg(test)]
pub fn places() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.iter().map(|example| (example.operation, example.place))
}
