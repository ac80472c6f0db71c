//! Timers that the loop polls.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::Sleep;

/// A timer that wakes the loop after the delay.
pub(super) fn armed(delay: Duration, cx: &mut Context<'_>) -> Pin<Box<Sleep>> {
    let mut sleep = Box::pin(tokio::time::sleep(delay));
    let _ = sleep.as_mut().poll(cx);
    sleep
}

/// Whether a timer was armed and its time has come; then it is disarmed.
pub(super) fn is_over(timer: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    let over = timer
        .as_mut()
        .is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
    if over {
        *timer = None;
    }
    over
}
