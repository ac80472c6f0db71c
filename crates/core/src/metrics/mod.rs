//! Metrics of a process, and their text format for Prometheus.
//!
//! Look an instrument up once by name and labels, and keep it; recording is an atomic addition. Rendering takes a lock that the hot path
//! never takes, so another thread can answer while PHP is blocked.
//!
//! ```
//! use std::time::Duration;
//! use weft_core::metrics;
//!
//! let requests = metrics::counter("weft_doc_requests_total", "Requests answered.", &[("route", "/people")]);
//! requests.add(1);
//! let latency = metrics::histogram("weft_doc_seconds", "Time to the last byte.", &[], metrics::LATENCY);
//! latency.record(Duration::from_millis(3));
//! assert!(metrics::render().contains("weft_doc_requests_total{route=\"/people\"} 1"));
//! ```

mod instruments;
mod merge;
mod registry;

pub use instruments::{Counter, Gauge, Histogram, LATENCY};
pub use merge::{merge, totals};
pub use registry::{Labels, counter, gauge, histogram, render};
