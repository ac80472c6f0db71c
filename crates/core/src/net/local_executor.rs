use hyper::rt::Executor;

/// Runs hyper's tasks on the `LocalSet` of this thread. The executor of `hyper-util` needs tasks that are `Send`.
#[derive(Clone)]
pub(crate) struct LocalExecutor;

impl<F> Executor<F> for LocalExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
