//! Examples of requests and answers, as a client sees them.

use serde_json::Value;

/// One example: whose it is, where it stands (`request` or a status), its name and what it shows.
struct Example {
    operation: &'static str,
    place: &'static str,
    name: &'static str,
    summary: &'static str,
    json: &'static str,
}

/// `operation place name "summary" "file";` for each.
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
    getHealth "200" lives "The process lives" "getHealth.200";
    getReadiness "200" ready "Everything answers" "getReadiness.200";
    getReadiness "503" unavailable "The chain does not answer" "getReadiness.503";
    listMarkets "200" page "A page" "listMarkets.200";
    getMarket "200" traded "A market that was traded" "getMarket.200";
    getQuote "200" buy "A buy of 25 USDC" "getQuote.200.buy";
    getQuote "200" sell "A sale, counted in tokens" "getQuote.200.sell";
    listPredictions "200" page "A page" "listPredictions.200";
    createTrade "request" buy "A buy of 25 USDC" "createTrade.request.buy";
    createTrade "request" sellAll "A sale of everything" "createTrade.request.sellAll";
    createTrade "request" dryRun "Checked and not made" "createTrade.request.dryRun";
    createTrade "201" pending "A new trade" "createTrade.201";
    createTrade "200" found "Found by its clientRequestId" "createTrade.200.found";
    createTrade "200" dryRun "What the trade would do" "createTrade.200.dryRun";
    createTrade "202" held "A trade of high value" "createTrade.202";
    confirmTrade "request" token "The token of the answer that held the trade" "confirmTrade.request";
    confirmTrade "200" released "A released trade" "confirmTrade.200";
    getTrace "200" completed "A trade that was held, confirmed and completed" "getTrace.200";
    listEvents "200" page "A trade that was held, and completed" "listEvents.200";
    listTrades "200" page "A page" "listTrades.200";
    getTrade "200" completed "A completed trade" "getTrade.200.completed";
    getTrade "200" rejected "A rejected trade" "getTrade.200.rejected";
    getPortfolio "200" portfolio "A portfolio" "getPortfolio.200";
    listPositions "200" positions "Two positions" "listPositions.200";
    getMarketHistory "200" hour "Two hours, one of them with trades" "getMarketHistory.200";
    createRedemption "request" winner "A winning outcome" "createRedemption.request";
    createRedemption "201" pending "A new claim" "createRedemption.201";
    createRedemption "200" paid "A claim that was paid" "getRedemption.200";
    listRedemptions "200" page "A page" "listRedemptions.200";
    getRedemption "200" paid "A claim that was paid" "getRedemption.200";
    listWebhookEvents "200" page "A page" "listWebhookEvents.200";
    getWebhookEvent "200" retrying "An event that is tried again" "getWebhookEvent.200";
    redeliverWebhookEvent "request" nothing "An empty object" "pauseKey.request";
    redeliverWebhookEvent "200" queued "A replay" "redeliverWebhookEvent.200";
    sendTestWebhook "request" nothing "An empty object" "pauseKey.request";
    sendTestWebhook "200" queued "A test" "sendTestWebhook.200";
    getWebhookEndpoint "200" spared "A receiver that is being spared" "getWebhookEndpoint.200";
    rotateWebhookSecret "request" nothing "An empty object" "pauseKey.request";
    rotateWebhookSecret "200" rotated "A new secret" "rotateWebhookSecret.200";
    pauseKey "request" nothing "An empty object" "pauseKey.request";
    pauseKey "200" paused "A paused key" "pauseKey.200";
    getUsage "200" usage "A key that traded" "getUsage.200";
    getAccountReadiness "200" ready "A key that can trade" "getAccountReadiness.200.ready";
    getAccountReadiness "200" new "A key of a user without an account" "getAccountReadiness.200.new";
    getKey "200" key "A key with an allowlist" "getKey.200";
};

/// The examples of `operation` that stand at `place`: name, summary, value.
pub fn of(operation: &str, place: &str) -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    EXAMPLES.iter().filter(move |example| example.operation == operation && example.place == place).map(
        |example| (example.name, example.summary, serde_json::from_str(example.json).unwrap_or_default()),
    )
}

/// The operations and places that the list speaks of.
#[cfg(test)]
pub fn places() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.iter().map(|example| (example.operation, example.place))
}
