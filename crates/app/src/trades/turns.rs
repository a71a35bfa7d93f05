//! The order in which several trades of one request are created.

use super::NewTrade;

/// Splits trades into groups, each with the indices of its trades in order. Trades with the same
/// idempotency key or `clientRequestId` are in one group: they must be created one after the other,
/// so that the first creates the trade and the others find it. The groups are independent.
///
/// `None` is a trade that cannot be read. It is a group of its own.
pub fn in_turns(trades: &[Option<&NewTrade>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, trade) in trades.iter().enumerate() {
        let is_related = |other: &usize| shares_name(*trade, trades[*other]);
        // One trade may have the key of one group and the id of another, which then become one.
        let related = groups.extract_if(.., |group| group.iter().any(is_related));
        let mut group: Vec<usize> = related.flatten().collect();
        group.sort_unstable();
        group.push(index);
        groups.push(group);
    }
    groups
}

fn shares_name(one: Option<&NewTrade>, other: Option<&NewTrade>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let equal = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
    equal(&one.idempotency_key, &other.idempotency_key)
        || equal(&one.draft.client_request_id, &other.draft.client_request_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::trade::Draft;

    fn named(key: &str, id: &str) -> NewTrade {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let draft = Draft { client_request_id: text(id), ..Draft::default() };
        NewTrade { draft, idempotency_key: text(key), dry_run: false, correlation_id: None }
    }

    fn groups(names: &[(&str, &str)]) -> Vec<Vec<usize>> {
        let trades: Vec<_> = names.iter().map(|(key, id)| named(key, id)).collect();
        in_turns(&trades.iter().map(Some).collect::<Vec<_>>())
    }

    #[test]
    fn trades_without_common_names_are_independent() {
        assert_eq!(groups(&[("a", ""), ("", "a"), ("", ""), ("", "")]), [[0], [1], [2], [3]]);
        assert_eq!(in_turns(&[None, None]), [[0], [1]]);
    }

    #[test]
    fn trades_with_a_common_key_or_id_are_created_in_their_order() {
        assert_eq!(groups(&[("a", ""), ("b", ""), ("a", ""), ("a", "")]), [vec![1], vec![0, 2, 3]]);
        assert_eq!(groups(&[("a", "x"), ("b", "x")]), [[0, 1]]);
    }

    #[test]
    fn a_trade_that_names_two_groups_joins_them() {
        assert_eq!(groups(&[("a", ""), ("b", "x"), ("c", ""), ("a", "x")]), [vec![2], vec![0, 1, 3]]);
    }
}
