//! Credentials, sessions and challenges: compare-and-set moves, conflicts and deletions.

use alloy_primitives::Address;
use domain::credential::{CredentialKey, CredentialKind, Role};
use domain::ids::{CredentialId, SessionId, UserId};
use domain::key::Tier;
use domain::passkey::{BackupState, Challenge, ChallengePurpose, PasskeyUse};
use domain::session::SessionTimes;
use futures::future::join_all;
use store::challenges::{self, IssuedChallenge};
use store::credentials::{self, Credential};
use store::sessions::{self, Session};
use store::users::{self, User};
use store::{Store, StoreError};

use crate::fixture::NOW;

fn id(n: u32) -> String {
    format!("01980000-0000-7000-8000-{n:012x}")
}

fn user_id(n: u32) -> UserId {
    id(n).parse().unwrap()
}

fn credential_id(n: u32) -> CredentialId {
    id(n).parse().unwrap()
}

/// A passkey with this id. Its public key is an address, because only its id matters here.
fn passkey(n: u32, user: u32, passkey_id: u8) -> Credential {
    Credential {
        id: credential_id(n),
        user_id: user_id(user),
        kind: CredentialKind::SignIn,
        name: "phone".to_owned(),
        signed_up: false,
        key: CredentialKey::Wallet(Address::repeat_byte(passkey_id)),
        passkey_id: Some(vec![passkey_id, 0, 255]),
        user_handle: Some(vec![7; 32]),
        counter: 0,
        backup: Some(BackupState::Eligible),
        transports: vec!["internal".to_owned(), "usb".to_owned()],
        created_at: NOW,
        last_used_at: None,
    }
}

fn wallet(n: u32, user: u32, address: u8) -> Credential {
    Credential {
        passkey_id: None,
        user_handle: None,
        backup: None,
        transports: vec![],
        ..passkey(n, user, address)
    }
}

fn session(n: u32, user: u32) -> Session {
    Session {
        id: id(n).parse().unwrap(),
        user_id: user_id(user),
        credential_id: credential_id(1),
        user_agent: "Mozilla/5.0".to_owned(),
        ip: "2001:db8::1".parse().unwrap(),
        created_at: NOW,
        times: SessionTimes::beginning(NOW),
    }
}

async fn insert_users(store: &Store) {
    for n in [1, 2] {
        let (role, tier) = (Role::User, Tier::Free);
        let user = User { id: user_id(n), name: "ada".to_owned(), role, tier, created_at: NOW };
        store.write(user, |tx, user| Box::pin(users::insert(tx, user))).await.unwrap();
    }
}

async fn insert(store: &Store, credential: Credential) -> Result<(), StoreError> {
    store.write(credential, |tx, credential| Box::pin(credentials::insert(tx, credential))).await
}

async fn mark_passkey_used(store: &Store, counter: u32) -> bool {
    let used = PasskeyUse { counter, backup: BackupState::BackedUp };
    let marked = store.write(used, |tx, used| {
        Box::pin(credentials::mark_passkey_used(tx, credential_id(1), used, NOW.plus_ms(1)))
    });
    marked.await.unwrap()
}

store::on_each_engine! {
    async fn a_credential_is_read_as_it_was_written(store: Store) {
        insert_users(&store).await;
        let (one, two) = (passkey(1, 1, 1), wallet(2, 1, 2));
        insert(&store, one.clone()).await.unwrap();
        insert(&store, two.clone()).await.unwrap();
        let read = store.read((), |tx, ()| {
            Box::pin(async move {
                Ok((
                    credentials::find_passkey(tx, &[1, 0, 255]).await?,
                    credentials::find_wallet(tx, Address::repeat_byte(2), user_id(1)).await?,
                    credentials::find_wallet(tx, Address::repeat_byte(1), user_id(1)).await?,
                    credentials::list(tx, user_id(1)).await?,
                ))
            })
        });
        assert_eq!(read.await.unwrap(), (Some(one.clone()), Some(two.clone()), None, vec![one, two]));
    }

    async fn a_passkey_signs_in_one_user_and_a_wallet_signs_up_once(store: Store) {
        insert_users(&store).await;
        insert(&store, passkey(1, 1, 1)).await.unwrap();
        let taken = insert(&store, passkey(3, 2, 1)).await.unwrap_err();
        assert!(taken.is_conflict_on("credentials_passkey"), "{taken}");
        let signed_up = |n: u32, user: u32| Credential { signed_up: true, ..wallet(n, user, 2) };
        insert(&store, signed_up(2, 1)).await.unwrap();
        let taken = insert(&store, signed_up(3, 2)).await.unwrap_err();
        assert!(taken.is_conflict_on("credentials_signed_up"), "{taken}");
        let taken = insert(&store, wallet(3, 1, 2)).await.unwrap_err();
        assert!(taken.is_conflict_on("credentials_wallet_user"), "{taken}");
        insert(&store, wallet(3, 2, 2)).await.unwrap();
        let listed = store.read((), |tx, ()| {
            Box::pin(credentials::list_wallet(tx, Address::repeat_byte(2)))
        });
        assert_eq!(listed.await.unwrap(), [signed_up(2, 1), wallet(3, 2, 2)]);
    }

    async fn a_counter_only_grows_unless_it_stays_zero(store: Store) {
        insert_users(&store).await;
        insert(&store, passkey(1, 1, 1)).await.unwrap();
        let table = [(0, true), (0, true), (5, true), (5, false), (4, false), (0, false), (6, true)];
        for (counter, accepted) in table {
            assert_eq!(mark_passkey_used(&store, counter).await, accepted, "{counter}");
        }
        let raced = join_all((0..8).map(|_| mark_passkey_used(&store, 7))).await;
        assert_eq!(raced.iter().filter(|marked| **marked).count(), 1);
    }

    async fn a_challenge_is_used_once_and_before_it_expires(store: Store) {
        let issue = async |random: u8| {
            let challenge = Challenge::new(ChallengePurpose::SignIn, [random; 32]);
            let issued =
                IssuedChallenge { challenge, user_id: None, created_at: NOW, expires_at: NOW.plus_ms(10) };
            store.write(issued, |tx, issued| Box::pin(challenges::insert(tx, issued))).await.unwrap();
            issued
        };
        let mark = async |issued: IssuedChallenge, at: i64| {
            let input = (issued.challenge, NOW.plus_ms(at));
            let marked = store.write(input, |tx, (challenge, now)| {
                Box::pin(challenges::mark_used(tx, challenge, *now))
            });
            marked.await.unwrap()
        };
        let find = async |issued: IssuedChallenge, at: i64| {
            let input = (issued.challenge, NOW.plus_ms(at));
            let found = store.read(input, |tx, (challenge, now)| {
                Box::pin(challenges::find_open(tx, challenge, *now))
            });
            found.await.unwrap()
        };
        let (first, second) = (issue(1).await, issue(2).await);
        assert_eq!((find(first, 9).await, find(first, 10).await), (Some(first), None));
        let raced = join_all((0..8).map(|_| mark(first, 9))).await;
        assert_eq!(raced.iter().filter(|marked| **marked).count(), 1);
        assert_eq!(find(first, 9).await, None);
        assert!(!mark(second, 10).await);
        let deleted = store.write((), |tx, ()| Box::pin(challenges::delete_expired(tx, NOW.plus_ms(11), 10)));
        assert_eq!(deleted.await, Ok(2));
    }

    async fn a_session_ends_only_for_its_user_and_is_deleted_by_age(store: Store) {
        insert_users(&store).await;
        for (n, user) in [(1, 1), (2, 1), (3, 2)] {
            let inserted = store.write((session(n, user), n.to_string()), |tx, (session, digest)| {
                Box::pin(sessions::insert(tx, session, digest))
            });
            inserted.await.unwrap();
        }
        let live = async |user: u32| {
            let listed =
                store.read(user, |tx, user| Box::pin(sessions::list_live(tx, user_id(*user), NOW))).await;
            listed.unwrap().iter().map(|session| session.id).collect::<Vec<SessionId>>()
        };
        assert_eq!(live(1).await, [session(2, 1).id, session(1, 1).id]);
        let end = async |user: u32, n: u32| {
            let ended = store.write((user, n), |tx, (user, n)| {
                Box::pin(sessions::mark_ended(tx, user_id(*user), session(*n, *user).id, NOW))
            });
            ended.await.unwrap()
        };
        assert!(!end(2, 1).await, "another user's session");
        assert!(end(1, 1).await && !end(1, 1).await);
        assert_eq!(live(1).await, [session(2, 1).id]);
        let found = store.read((), |tx, ()| Box::pin(sessions::find_by_token(tx, "1"))).await.unwrap().unwrap();
        let ended = SessionTimes { ended_at: Some(NOW), ..SessionTimes::beginning(NOW) };
        assert_eq!(found.0, Session { times: ended, ..session(1, 1) });
        let deleted = store.write((), |tx, ()| Box::pin(sessions::delete_before(tx, NOW.plus_ms(1), 2)));
        assert_eq!(deleted.await, Ok(2));
    }
}
