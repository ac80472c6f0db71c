//! Metrics of PHP, and `Weft\Native\MetricsEndpoint`.

use std::sync::Arc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::ZendHashTable;

use weft_core::metrics;
use weft_core::workers::{MetricsServer, loop_watchdog};

use crate::array::Values;
use crate::failure::Failure;
use crate::runtime::seconds;
use crate::text::pairs;

#[php_class]
#[php(name = "Weft\\Native\\Histogram")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct Histogram(Arc<metrics::Histogram>);

#[php_impl]
impl Histogram {
    pub fn __construct(name: &str, help: &str, labels: &ZendHashTable) -> PhpResult<Self> {
        let labels = pairs(labels)?;
        let bounds = metrics::LATENCY;
        Ok(Self(metrics::histogram(
            name,
            help,
            &borrowed(&labels),
            bounds,
        )))
    }

    pub fn record(&self, duration: f64) {
        self.0.record(seconds(duration));
    }
}

impl Histogram {
    pub fn instrument(&self) -> &Arc<metrics::Histogram> {
        &self.0
    }
}

#[php_class]
#[php(name = "Weft\\Native\\MetricsEndpoint")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct MetricsEndpoint(MetricsServer);

#[php_impl]
impl MetricsEndpoint {
    pub fn open(address: &str) -> PhpResult<Self> {
        let server = MetricsServer::of_this_process(address).map_err(|error| {
            Failure::new(
                "http.listen",
                format!("cannot serve metrics on {address}: {error}"),
            )
        })?;
        Ok(Self(server))
    }

    pub fn address(&self) -> String {
        self.0.address().to_string()
    }

    pub fn update(&self, ready: bool, stopping: bool, failing: Values<String>) {
        self.0.update(u64::from(ready), 1, stopping, failing.0);
    }
}

#[php_function]
#[php(name = "Weft\\Native\\measured")]
pub fn measured() -> bool {
    loop_watchdog::is_measured()
}

#[php_function]
#[php(name = "Weft\\Native\\addToCounter")]
pub fn add_to_counter(name: &str, help: &str, labels: &ZendHashTable, by: i64) -> PhpResult<()> {
    let labels = pairs(labels)?;
    metrics::counter(name, help, &borrowed(&labels)).add(u64::try_from(by).unwrap_or(0));
    Ok(())
}

#[php_function]
#[php(name = "Weft\\Native\\setGauge")]
pub fn set_gauge(name: &str, help: &str, labels: &ZendHashTable, value: f64) -> PhpResult<()> {
    let labels = pairs(labels)?;
    metrics::gauge(name, help, &borrowed(&labels)).set(value);
    Ok(())
}

#[php_function]
#[php(name = "Weft\\Native\\metrics")]
pub fn render_metrics() -> String {
    metrics::render()
}

fn borrowed(labels: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = labels.iter();
    pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    module
        .class::<Histogram>()
        .class::<MetricsEndpoint>()
        .function(wrap_function!(measured))
        .function(wrap_function!(add_to_counter))
        .function(wrap_function!(set_gauge))
        .function(wrap_function!(render_metrics))
}
