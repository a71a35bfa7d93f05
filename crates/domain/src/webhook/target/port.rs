//! Ports of protocols other than HTTP. An outsider partly chooses the bytes of a webhook request,
//! so it must not reach a mail server or a database.

/// The ports from 1024 up that browsers block: the "bad ports" of the Fetch standard.
const FETCH_BAD: &[u16] = &[
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
    6697, 10080,
];

/// Databases, caches, queues and mail servers that the Fetch standard does not list.
const STORES: &[u16] = &[
    1433, 1434, // SQL Server
    1521, // Oracle
    2181, // ZooKeeper
    2379, 2380, // etcd
    2525, // mail submission
    3306, // MySQL
    5432, 6432, // PostgreSQL, PgBouncer
    5671, 5672, // AMQP
    6379, 6380, 16379, 26379, // Redis, its TLS port, its cluster's bus, Sentinel
    7000, 7001, 9042, 9160, // Cassandra
    7687, // Neo4j
    9092, // Kafka
    9200, 9300,  // Elasticsearch
    11211, // Memcached
    26257, // CockroachDB
    27017, 27018, 27019, // MongoDB
    28015, // RethinkDB
];

/// Returns true if webhooks must not use this port, which must be at least 1024.
pub(super) fn is_blocked(port: u16) -> bool {
    FETCH_BAD.contains(&port) || STORES.contains(&port)
}
