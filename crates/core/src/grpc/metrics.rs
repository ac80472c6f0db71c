use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::status::Code;
use crate::metrics::{self, Counter, Histogram, LATENCY};

/// Metrics of one method.
#[derive(Debug)]
pub(super) struct MethodMetrics {
    method: String,
    seconds: Arc<Histogram>,
    /// Counters by status, created when the first call ends with it.
    ended: RefCell<[Option<Arc<Counter>>; Code::COUNT]>,
}

impl MethodMetrics {
    pub(super) fn new(method: &str) -> Self {
        let help = "Duration of gRPC calls, by method.";
        Self {
            seconds: metrics::histogram(
                "weft_grpc_call_duration_seconds",
                help,
                &[("method", method)],
                LATENCY,
            ),
            method: method.to_owned(),
            ended: RefCell::default(),
        }
    }

    fn record(&self, code: Code, began: Instant) {
        self.seconds.record(began.elapsed());
        let mut ended = self.ended.borrow_mut();
        let counter = &mut ended[usize::from(code.number())];
        let counter = counter.get_or_insert_with(|| {
            let help = "Completed gRPC calls, by method and status.";
            let labels = [("method", self.method.as_str()), ("status", code.name())];
            metrics::counter("weft_grpc_calls_total", help, &labels)
        });
        counter.add(1);
    }
}

/// Measures one call, in a process that serves metrics.
#[derive(Debug)]
pub(super) struct CallTimer {
    metrics: Rc<MethodMetrics>,
    began: Instant,
}

impl CallTimer {
    pub(super) fn start(metrics: &Rc<MethodMetrics>) -> Self {
        Self {
            metrics: Rc::clone(metrics),
            began: Instant::now(),
        }
    }

    pub(super) fn stop(self, code: Code) {
        self.metrics.record(code, self.began);
    }
}
