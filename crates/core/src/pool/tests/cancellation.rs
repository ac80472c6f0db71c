//! Every future of the pool, dropped at every poll: no connection, room or place in the queue is lost.

use std::time::Duration;

use super::{TestManager, pool, pool_with, run, settle};
use crate::cancellation_tests::drop_at_every_poll;
use crate::pool::{Condition, Pool, PoolOptions};

type State = (Pool<TestManager>, TestManager);

/// Nothing is in use after a drop, and everybody is served as far as the size goes.
async fn is_in_order((pool, manager): State) {
    settle().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let stats = pool.stats();
    assert_eq!(
        (stats.in_use, stats.waiting, stats.connecting),
        (0, 0, 0),
        "{stats:?}"
    );
    assert_eq!(manager.0.alive.get(), stats.idle);
    let mut leases = Vec::new();
    for _ in 0..stats.size {
        leases.push(pool.borrow().await.unwrap());
    }
    assert_eq!(pool.stats().in_use, stats.size);
}

#[test]
fn a_borrower_of_a_new_connection_may_leave_at_any_time() {
    run(drop_at_every_poll(
        async || pool(2),
        async |(pool, _): &mut State| drop(pool.borrow().await.unwrap()),
        async |state, _| is_in_order(state).await,
    ));
}

#[test]
fn a_borrower_of_an_idle_connection_may_leave_at_any_time() {
    for silence in [1, 31] {
        run(drop_at_every_poll(
            async || {
                let (pool, manager) = pool(2);
                drop(pool.borrow().await.unwrap());
                tokio::time::sleep(Duration::from_secs(silence)).await;
                (pool, manager)
            },
            async |(pool, _): &mut State| drop(pool.borrow().await.unwrap()),
            async |state, _| is_in_order(state).await,
        ));
    }
}

#[test]
fn a_borrower_in_the_queue_may_leave_at_any_time_also_with_what_was_just_delivered() {
    for condition in [Condition::Clean, Condition::Dirty, Condition::Broken] {
        run(drop_at_every_poll(
            async || {
                let (pool, manager) = pool(1);
                let mut lease = pool.borrow().await.unwrap();
                lease.condition = condition;
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    drop(lease);
                });
                (pool, manager)
            },
            async |(pool, _): &mut State| {
                let mut lease = pool.borrow().await.unwrap();
                lease.condition = Condition::Clean;
            },
            async |state, _| is_in_order(state).await,
        ));
    }
}

#[test]
fn a_borrower_whose_connection_is_validated_in_vain_may_leave_at_any_time() {
    run(drop_at_every_poll(
        async || {
            let (pool, manager) = pool(2);
            let both = [pool.borrow().await.unwrap(), pool.borrow().await.unwrap()];
            drop(both);
            tokio::time::sleep(Duration::from_secs(31)).await;
            manager.0.hangs.set(true);
            (pool, manager)
        },
        async |(pool, _): &mut State| drop(pool.borrow().await.unwrap()),
        async |(pool, manager), _| {
            manager.0.hangs.set(false);
            is_in_order((pool, manager)).await;
        },
    ));
}

#[test]
fn a_close_that_is_dropped_is_finished_by_the_next() {
    run(drop_at_every_poll(
        async || {
            let (pool, manager) = pool_with(PoolOptions {
                size: 2,
                ..PoolOptions::default()
            });
            let lease = pool.borrow().await.unwrap();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                drop(lease);
            });
            (pool, manager)
        },
        async |(pool, _): &mut State| pool.close().await,
        async |(pool, manager), _| {
            pool.close().await;
            assert_eq!((manager.0.alive.get(), pool.stats().in_use), (0, 0));
        },
    ));
}
