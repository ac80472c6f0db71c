//! One test for each bug that recurs in connection pools.

use super::*;
use std::time::Duration;

use tokio::task::spawn_local;

#[test]
fn a_waiter_cancelled_at_any_moment_never_takes_the_wake_up_of_the_next_with_it() {
    for moment in 0..8 {
        run(async {
            let (pool, _) = pool(1);
            let held = pool.borrow().await.unwrap();
            let (quitter, next) = (borrow(&pool), borrow(&pool));
            if moment < 4 {
                yields(moment).await;
                quitter.abort();
                drop(held);
            } else {
                yields(4).await;
                drop(held);
                yields(moment - 4).await;
                quitter.abort();
            }
            let began = tokio::time::Instant::now();
            drop(quitter.await);
            assert!(next.await.unwrap().is_ok());
            assert!(began.elapsed() <= Duration::from_millis(1), "{moment}");
        });
    }
}

#[test]
fn a_connect_that_fails_or_panics_leaves_nobody_waiting_for_it() {
    run(async {
        let (pool, manager) = pool(2);
        manager.0.by_hand.set(true);
        let waiting = [borrow(&pool), borrow(&pool)];
        settle().await;
        manager.0.panics.set(1);
        assert!(manager.answer_next(Ok(())));
        settle().await;
        assert!(manager.answer_next(Ok(())));
        settle().await;
        assert_eq!(pool.stats().in_use, 1);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(manager.answer_next(Ok(())), "the pool tries again");
        for waiter in waiting {
            assert!(waiter.await.unwrap().is_ok());
        }
    });
}

#[test]
fn without_a_borrow_timeout_a_connection_that_cannot_be_opened_fails_its_waiter_although_others_are_lent()
 {
    run(async {
        let (pool, manager) = pool_with(PoolOptions {
            size: 3,
            borrow_timeout: Duration::ZERO,
            ..PoolOptions::default()
        });
        let _held = pool.borrow().await.unwrap();
        manager.0.by_hand.set(true);
        let waiting = [borrow(&pool), borrow(&pool)];
        settle().await;
        assert!(manager.answer_next(Err("no memory")));
        settle().await;
        assert_eq!(pool.stats().waiting, 1);
        assert!(manager.answer_next(Ok(())));
        let [failed, served] = waiting;
        assert_eq!(
            failed.await.unwrap().err(),
            Some(Error::Connect("no memory"))
        );
        assert!(served.await.unwrap().is_ok());
    });
}

#[test]
fn a_recovery_that_fails_panics_or_hangs_neither_leaks_room_nor_makes_too_much_of_it() {
    run(async {
        let (pool, manager) = pool(2);
        for round in 0..30 {
            let mut lease = pool.borrow().await.unwrap();
            lease.condition = Condition::Dirty;
            manager.0.recovers.set(round % 3 == 0);
            manager.0.hangs.set(round % 3 == 1);
            manager.0.panics.set(usize::from(round % 5 == 4));
            drop(lease);
            settle().await;
            let stats = pool.stats();
            assert!(
                stats.idle + stats.in_use + stats.connecting <= 2,
                "{stats:?}"
            );
        }
        manager.0.hangs.set(false);
        manager.0.panics.set(0);
        tokio::time::sleep(Duration::from_secs(6)).await;
        let both = [pool.borrow().await.unwrap(), pool.borrow().await.unwrap()];
        assert_eq!(pool.stats().in_use, 2);
        drop(both);
    });
}

#[test]
fn cleaning_a_silent_peer_ends_with_the_return_timeout_and_frees_its_room() {
    run(async {
        let (pool, manager) = pool(1);
        let mut lease = pool.borrow().await.unwrap();
        lease.condition = Condition::Dirty;
        manager.0.hangs.set(true);
        let began = tokio::time::Instant::now();
        drop(lease);
        assert_eq!(pool.borrow().await.unwrap().number, 2);
        assert_eq!(began.elapsed().as_secs(), 5);
    });
}

#[test]
fn a_statement_is_terminated_if_and_only_if_recovery_exceeds_the_return_timeout() {
    run(async {
        let (pool, manager) = pool(1);
        for (hangs, terminated) in [(false, 0), (true, 1)] {
            manager.0.hangs.set(hangs);
            let mut lease = pool.borrow().await.unwrap();
            lease.condition = Condition::Dirty;
            drop(lease);
            tokio::time::sleep(Duration::from_secs(11)).await;
            assert_eq!(manager.0.terminated.get(), terminated);
        }
        assert_eq!(pool.stats().in_use, 0);
    });
}

#[test]
fn a_return_timeout_of_zero_still_terminates_what_runs() {
    run(async {
        let (pool, manager) = pool_with(PoolOptions {
            return_timeout: Duration::ZERO,
            ..PoolOptions::default()
        });
        manager.0.hangs.set(true);
        let mut lease = pool.borrow().await.unwrap();
        lease.condition = Condition::Dirty;
        drop(lease);
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(manager.0.terminated.get(), 1);
    });
}

#[test]
fn a_pool_whose_connections_all_die_is_at_its_minimum_again_within_a_second() {
    run(async {
        let (pool, manager) = pool_with(PoolOptions {
            size: 8,
            minimum_idle: 5,
            ..PoolOptions::default()
        });
        pool.warm_up();
        settle().await;
        assert_eq!(pool.stats().idle, 5);
        for _ in 0..5 {
            manager.0.dead.set(manager.0.made.get());
            tokio::time::sleep(Duration::from_millis(999)).await;
            assert_eq!((pool.stats().idle, manager.0.alive.get()), (5, 5));
        }
    });
}

#[test]
fn a_connection_nobody_has_heard_from_is_asked_before_it_is_lent_and_a_dead_one_costs_its_timeout()
{
    run(async {
        let (pool, manager) = pool(1);
        drop(pool.borrow().await.unwrap());
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(pool.borrow().await.unwrap().number, 1);
        tokio::time::sleep(Duration::from_secs(31)).await;
        manager.0.hangs.set(true);
        let began = tokio::time::Instant::now();
        assert_eq!(pool.borrow().await.unwrap().number, 2);
        assert_eq!(began.elapsed().as_secs(), 1);
    });
}

/// A pool with as many connections, all idle and not heard of for longer than `validate_after`.
async fn silent_pool(size: usize) -> (Pool<TestManager>, TestManager) {
    let (pool, manager) = pool(size);
    let borrowing: Vec<_> = (0..size).map(|_| borrow(&pool)).collect();
    let mut leases = Vec::new();
    for lease in borrowing {
        leases.push(lease.await.unwrap().unwrap());
    }
    drop(leases);
    tokio::time::sleep(Duration::from_secs(31)).await;
    (pool, manager)
}

#[test]
fn after_a_silence_as_many_connections_are_validated_as_are_borrowed() {
    run(async {
        let (pool, manager) = silent_pool(20).await;
        assert_eq!(pool.stats().idle, 20);
        let first = pool.borrow().await.unwrap();
        assert_eq!(manager.0.validated.get(), 1);
        let both = [borrow(&pool), borrow(&pool)];
        settle().await;
        assert_eq!((manager.0.validated.get(), pool.stats().in_use), (3, 3));
        // Only connections that are about to be lent are validated.
        assert!(pool.try_borrow().is_none());
        settle().await;
        assert_eq!(manager.0.validated.get(), 3);
        drop((first, both));
    });
}

#[test]
fn connections_that_do_not_answer_are_validated_in_growing_numbers() {
    run(async {
        let (pool, manager) = silent_pool(20).await;
        manager.0.hangs.set(true);
        let began = tokio::time::Instant::now();
        let lease = pool.borrow().await.unwrap();
        // 1 + 2 + 8 + 9, a second each: every failure doubles how many are validated for one waiter.
        assert!(began.elapsed().as_secs() <= 5, "{:?}", began.elapsed());
        assert!(lease.number > 20 && manager.0.made.get() == 21);
        assert_eq!(manager.0.validated.get(), 20);
    });
}

#[test]
fn a_validation_whose_borrower_has_left_serves_the_next_one() {
    run(async {
        let (pool, manager) = silent_pool(3).await;
        let leaver = borrow(&pool);
        tokio::task::yield_now().await;
        leaver.abort();
        settle().await;
        let lease = pool.borrow().await.unwrap();
        assert!(manager.0.validated.get() <= 1);
        drop(lease);
        assert_eq!((pool.stats().idle, pool.stats().in_use), (3, 0));
    });
}

#[test]
fn a_resumed_pool_lends_its_waiters_no_connection_that_died_meanwhile() {
    run(async {
        for dead in [0, 1, 2] {
            let (pool, manager) = pool(2);
            drop((pool.borrow().await.unwrap(), pool.borrow().await.unwrap()));
            pool.pause();
            let waiting = [borrow(&pool), borrow(&pool)];
            settle().await;
            assert_eq!((pool.stats().idle, pool.stats().waiting), (2, 2));
            manager.0.dead.set(dead);
            let began = tokio::time::Instant::now();
            pool.resume();
            for waiter in waiting {
                let lease = waiter.await.unwrap().unwrap();
                assert!(lease.number > dead, "{} of {dead} dead", lease.number);
                std::mem::forget(lease);
            }
            assert_eq!(manager.0.made.get(), 2 + dead);
            assert!(began.elapsed() < Duration::from_millis(100));
        }
    });
}

#[test]
fn idle_connections_are_kept_alive_and_those_that_do_not_answer_are_replaced() {
    run(async {
        let (pool, manager) = pool_with(PoolOptions {
            size: 4,
            minimum_idle: 2,
            keepalive_interval: Duration::from_secs(10),
            ..PoolOptions::default()
        });
        pool.warm_up();
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert!(
            (4..=8).contains(&manager.0.validated.get()),
            "{}",
            manager.0.validated.get()
        );
        assert_eq!(manager.0.made.get(), 2);
        manager.0.hangs.set(true);
        tokio::time::sleep(Duration::from_secs(15)).await;
        manager.0.hangs.set(false);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(manager.0.made.get() >= 4);
        assert_eq!(pool.stats().idle, 2);
    });
}

#[test]
fn of_fifty_connections_opened_together_at_most_three_end_in_the_same_second() {
    run(async {
        let (pool, _) = pool_with(PoolOptions {
            size: 50,
            minimum_idle: 50,
            connect_limit: 50,
            max_lifetime: Duration::from_secs(60),
            idle_timeout: Duration::ZERO,
            ..PoolOptions::default()
        });
        pool.warm_up();
        settle().await;
        assert_eq!(pool.stats().idle, 50);
        let mut before = 0;
        for second in 0..60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let expired = pool.stats().expired;
            assert!(
                expired - before <= 3,
                "{} in second {second}",
                expired - before
            );
            before = expired;
        }
        assert!(before >= 45);
    });
}

#[test]
fn the_end_of_a_lifetime_never_interrupts_use_and_waits_for_a_queue_only_so_long() {
    run(async {
        let (pool, _) = pool_with(PoolOptions {
            size: 1,
            max_lifetime: Duration::from_secs(10),
            lifetime_jitter: 0.0,
            renewal_timeout: Duration::from_secs(2),
            ..PoolOptions::default()
        });
        let lease = pool.borrow().await.unwrap();
        tokio::time::sleep(Duration::from_millis(10_500)).await;
        let next = borrow(&pool);
        settle().await;
        drop(lease);
        let lease = next.await.unwrap().unwrap();
        assert_eq!(lease.number, 1, "somebody waited, and it was not long past");
        tokio::time::sleep(Duration::from_secs(3)).await;
        let next = borrow(&pool);
        settle().await;
        drop(lease);
        assert_eq!(next.await.unwrap().unwrap().number, 2);
    });
}

#[test]
fn closing_while_a_connection_is_being_opened_neither_hangs_nor_leaves_an_orphan() {
    run(async {
        let (pool, manager) = pool(3);
        manager.0.by_hand.set(true);
        let waiting = [borrow(&pool), borrow(&pool)];
        settle().await;
        let closing = spawn_local({
            let pool = pool.clone();
            async move { pool.close().await }
        });
        settle().await;
        assert!(manager.answer_next(Ok(())) && manager.answer_next(Err("down")));
        closing.await.unwrap();
        for waiter in waiting {
            assert!(matches!(waiter.await.unwrap(), Err(Error::Closed { .. })));
        }
        assert_eq!(manager.0.alive.get(), 0);
    });
}

#[test]
fn a_task_that_holds_everything_and_waits_for_more_is_told_at_once() {
    run(async {
        let (pool, _) = pool(2);
        let task = |number| {
            pool.on_behalf_of(Borrower {
                task: Some(number),
                ..Borrower::default()
            })
        };
        let own = task(1).borrow().await.unwrap();
        let other = task(2).borrow().await.unwrap();
        let began = tokio::time::Instant::now();
        let waiting = borrow(&task(1));
        settle().await;
        assert!(!waiting.is_finished(), "task 2 may give its own back");
        let error = task(2).borrow().await.err().unwrap();
        assert!(
            matches!(&error, Error::SelfBlocked { holders, .. } if holders.len() == 2),
            "{error}"
        );
        assert!(began.elapsed().is_zero());
        drop(other);
        assert!(waiting.await.unwrap().is_ok());
        drop(own);
    });
}

#[test]
fn a_task_whose_cancelled_connection_has_just_come_back_does_not_block_itself() {
    run(async {
        let (pool, _) = pool(1);
        let task = pool.on_behalf_of(Borrower {
            task: Some(1),
            ..Borrower::default()
        });
        let cancelled = task.borrow().await.unwrap();
        let next = borrow(&task);
        // It has joined the queue and looks again in the next turn.
        yields(1).await;
        drop(cancelled);
        assert!(next.await.unwrap().is_ok());
    });
}

#[test]
fn surplus_connections_fall_asleep_and_are_closed_down_to_the_minimum() {
    run(async {
        let (pool, _) = pool_with(PoolOptions {
            size: 10,
            minimum_idle: 2,
            idle_timeout: Duration::from_secs(10),
            ..PoolOptions::default()
        });
        let burst: Vec<_> = (0..10).map(|_| borrow(&pool)).collect();
        for lease in burst {
            drop(lease.await.unwrap());
        }
        for _ in 0..30 {
            drop(pool.borrow().await.unwrap());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(pool.stats().idle, 2);
    });
}

#[test]
fn slow_connecting_exhaustion_and_a_server_that_is_down_are_told_apart() {
    run(async {
        let (pool, manager) = pool(1);
        manager.0.by_hand.set(true);
        assert!(matches!(
            pool.borrow().await,
            Err(Error::Slow { creating: 1, .. })
        ));
        manager.answer_next(Ok(()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        manager.0.by_hand.set(false);
        let held = pool.borrow().await.unwrap();
        assert!(matches!(pool.borrow().await, Err(Error::Exhausted { .. })));
        drop(held);
    });
}

#[test]
fn a_server_that_comes_back_is_asked_by_one_and_then_at_most_by_the_limit_at_a_time() {
    run(async {
        let (pool, manager) = pool_with(PoolOptions {
            size: 50,
            connect_limit: 4,
            ..PoolOptions::default()
        });
        manager.0.by_hand.set(true);
        let waiting: Vec<_> = (0..50).map(|_| borrow(&pool)).collect();
        settle().await;
        assert_eq!(manager.0.orders.borrow().len(), 4);
        for _ in 0..4 {
            assert!(manager.answer_next(Err("down")));
        }
        settle().await;
        for waiter in waiting {
            assert!(matches!(waiter.await.unwrap(), Err(Error::Connect("down"))));
        }
        let mut attempts = 0;
        for _ in 0..1_000 {
            drop(borrow(&pool));
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(manager.0.orders.borrow().len() <= 1);
            attempts += usize::from(manager.answer_next(Err("down")));
        }
        assert!(
            (3..=15).contains(&attempts),
            "{attempts} attempts in a second"
        );
    });
}
