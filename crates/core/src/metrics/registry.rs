use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::instruments::{Counter, Gauge, Histogram};

/// Names and values; values may hold anything.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

struct Family {
    help: String,
    /// By rendered labels.
    series: BTreeMap<String, Instrument>,
}

#[derive(Clone)]
enum Instrument {
    Counter(Arc<Counter>),
    Gauge(Arc<Gauge>),
    Histogram(Arc<Histogram>),
}

static FAMILIES: Mutex<BTreeMap<String, Family>> = Mutex::new(BTreeMap::new());

/// The counter of that name and those labels. Its name ends in `_total`.
///
/// A name that belongs to an instrument of another kind yields an instrument that is not rendered.
pub fn counter(name: &str, help: &str, labels: Labels<'_>) -> Arc<Counter> {
    let make = || Instrument::Counter(Arc::default());
    match instrument(name, help, labels, make) {
        Instrument::Counter(counter) => counter,
        _ => Arc::default(),
    }
}

/// The gauge of that name and those labels.
pub fn gauge(name: &str, help: &str, labels: Labels<'_>) -> Arc<Gauge> {
    let make = || Instrument::Gauge(Arc::default());
    match instrument(name, help, labels, make) {
        Instrument::Gauge(gauge) => gauge,
        _ => Arc::default(),
    }
}

/// The histogram of that name and those labels; `bounds` are seconds in ascending order. Its name ends in `_seconds`.
pub fn histogram(
    name: &str,
    help: &str,
    labels: Labels<'_>,
    bounds: &'static [f64],
) -> Arc<Histogram> {
    let make = || Instrument::Histogram(Arc::new(Histogram::new(bounds)));
    match instrument(name, help, labels, make) {
        Instrument::Histogram(histogram) => histogram,
        _ => Arc::new(Histogram::new(bounds)),
    }
}

/// All instruments in the text format of Prometheus, version 0.0.4, ordered by name.
pub fn render() -> String {
    let mut text = String::new();
    for (name, family) in families().iter() {
        let Some(first) = family.series.values().next() else {
            continue;
        };
        let _ = writeln!(text, "# HELP {name} {}", family.help);
        let _ = writeln!(text, "# TYPE {name} {}", first.kind());
        for (labels, instrument) in &family.series {
            instrument.write(&mut text, name, labels);
        }
    }
    text
}

impl Instrument {
    fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) => "counter",
            Self::Gauge(_) => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }

    fn write(&self, text: &mut String, name: &str, labels: &str) {
        let value = match self {
            Self::Counter(counter) => counter.value().to_string(),
            Self::Gauge(gauge) => gauge.value().to_string(),
            Self::Histogram(histogram) => return histogram.write(text, name, labels),
        };
        let _ = if labels.is_empty() {
            writeln!(text, "{name} {value}")
        } else {
            writeln!(text, "{name}{{{labels}}} {value}")
        };
    }
}

fn instrument(
    name: &str,
    help: &str,
    labels: Labels<'_>,
    make: impl FnOnce() -> Instrument,
) -> Instrument {
    let mut families = families();
    let family = families.entry(name.to_owned()).or_insert_with(|| Family {
        help: help.replace('\\', "\\\\").replace('\n', "\\n"),
        series: BTreeMap::new(),
    });
    family
        .series
        .entry(rendered(labels))
        .or_insert_with(make)
        .clone()
}

fn rendered(labels: Labels<'_>) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        let comma = if text.is_empty() { "" } else { "," };
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(text, "{comma}{name}=\"{value}\"");
    }
    text
}

fn families() -> MutexGuard<'static, BTreeMap<String, Family>> {
    FAMILIES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn lines_of(prefix: &str) -> Vec<String> {
        let text = render();
        let lines = text.lines().filter(|line| line.contains(prefix));
        lines.map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_same_name_and_labels_are_the_same_counter() {
        counter("test_same_total", "Help.", &[("a", "1")]).add(2);
        counter("test_same_total", "Help.", &[("a", "1")]).add(3);
        counter("test_same_total", "Help.", &[("a", "2")]).add(1);
        assert_eq!(
            lines_of("test_same"),
            [
                "# HELP test_same_total Help.",
                "# TYPE test_same_total counter",
                "test_same_total{a=\"1\"} 5",
                "test_same_total{a=\"2\"} 1",
            ]
        );
    }

    #[test]
    fn the_buckets_of_a_histogram_add_up() {
        let histogram = histogram("test_bucket_seconds", "Help.", &[], &[0.1, 1.0]);
        for milliseconds in [50, 100, 500, 2000] {
            histogram.record(Duration::from_millis(milliseconds));
        }
        assert_eq!(
            lines_of("test_bucket_seconds_"),
            [
                "test_bucket_seconds_bucket{le=\"0.1\"} 2",
                "test_bucket_seconds_bucket{le=\"1\"} 3",
                "test_bucket_seconds_bucket{le=\"+Inf\"} 4",
                "test_bucket_seconds_sum 2.65",
                "test_bucket_seconds_count 4",
            ]
        );
    }

    #[test]
    fn label_values_are_escaped() {
        gauge("test_escaped", "Help.", &[("path", "a\"b\\c\nd")]).set(1.5);
        assert_eq!(
            lines_of("test_escaped{"),
            ["test_escaped{path=\"a\\\"b\\\\c\\nd\"} 1.5"]
        );
    }
}
