use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Merges the texts of several processes: each sample gets the label `worker` with the name of its process.
///
/// The samples of a process whose name is empty stay unchanged. Samples of one name and equal labels add up: Prometheus would refuse
/// the text, or keep one of them. A worker and the successor that has replaced it have the same name.
pub fn merge(processes: &[(String, String)]) -> String {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for (worker, text) in processes {
        collect(&mut families, worker, text);
    }
    let mut merged = String::new();
    for family in families.values() {
        for line in &family.head {
            let _ = writeln!(merged, "{line}");
        }
        for (series, value) in &family.samples {
            let _ = writeln!(merged, "{series} {value}");
        }
    }
    merged
}

/// The counters and histograms of a text: what remains true of a process that has ended.
pub fn totals(text: &str) -> String {
    let mut totals = String::new();
    let mut family = String::new();
    let mut is_total = false;
    for line in text.lines() {
        if line.starts_with("# HELP ") {
            is_total = false;
            family = format!("{line}\n");
        } else if let Some(declared) = line.strip_prefix("# TYPE ") {
            is_total = declared.ends_with(" counter") || declared.ends_with(" histogram");
            if is_total {
                let _ = writeln!(totals, "{family}{line}");
            }
            family.clear();
        } else if is_total {
            let _ = writeln!(totals, "{line}");
        }
    }
    totals
}

#[derive(Default)]
struct Family<'a> {
    head: Vec<&'a str>,
    samples: Vec<(String, f64)>,
    /// Where each series is among the samples.
    positions: HashMap<String, usize>,
}

impl Family<'_> {
    fn add(&mut self, series: String, value: f64) {
        if let Some(position) = self.positions.get(&series) {
            self.samples[*position].1 += value;
        } else {
            self.positions.insert(series.clone(), self.samples.len());
            self.samples.push((series, value));
        }
    }
}

fn collect<'a>(families: &mut BTreeMap<&'a str, Family<'a>>, worker: &str, text: &'a str) {
    let mut name = "";
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            name = comment.split(' ').nth(1).unwrap_or_default();
            let head = &mut families.entry(name).or_default().head;
            if !head.contains(&line) {
                head.push(line);
            }
        } else if let Some((series, value)) = line.rsplit_once(' ')
            && let Ok(value) = value.parse()
        {
            let family = families.entry(name).or_default();
            family.add(labelled(series, worker), value);
        }
    }
}

fn labelled(series: &str, worker: &str) -> String {
    if worker.is_empty() {
        return series.to_owned();
    }
    match series.split_once('{') {
        Some((name, labels)) => format!("{name}{{worker=\"{worker}\",{labels}"),
        None => format!("{series}{{worker=\"{worker}\"}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_family_stand_together_and_name_their_worker() {
        let text = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total{x=\"y z\"} 2\n";
        let own = "# HELP b B.\n# TYPE b gauge\nb 3\n";
        let merged = merge(&[
            (String::new(), own.to_owned()),
            ("1".to_owned(), text.to_owned()),
            ("2".to_owned(), text.to_owned()),
        ]);
        assert_eq!(
            merged,
            "# HELP a_total A.\n# TYPE a_total counter\n\
             a_total{worker=\"1\"} 1\na_total{worker=\"1\",x=\"y z\"} 2\n\
             a_total{worker=\"2\"} 1\na_total{worker=\"2\",x=\"y z\"} 2\n\
             # HELP b B.\n# TYPE b gauge\nb 3\n"
        );
    }

    #[test]
    fn equal_series_of_a_worker_and_its_predecessor_add_up() {
        let text = |count: u32| {
            format!(
                "# HELP a_seconds A.\n# TYPE a_seconds histogram\n\
                 a_seconds_bucket{{le=\"0.1\"}} {count}\na_seconds_sum 0.5\na_seconds_count {count}\n\
                 # HELP b B.\n# TYPE b gauge\nb{{x=\"y z\"}} 2\n"
            )
        };
        let merged = merge(&[("1".to_owned(), text(200)), ("1".to_owned(), text(1))]);
        assert_eq!(
            merged,
            "# HELP a_seconds A.\n# TYPE a_seconds histogram\n\
             a_seconds_bucket{worker=\"1\",le=\"0.1\"} 201\na_seconds_sum{worker=\"1\"} 1\n\
             a_seconds_count{worker=\"1\"} 201\n\
             # HELP b B.\n# TYPE b gauge\nb{worker=\"1\",x=\"y z\"} 4\n"
        );
        assert_eq!(
            totals(&text(3)),
            "# HELP a_seconds A.\n# TYPE a_seconds histogram\n\
             a_seconds_bucket{le=\"0.1\"} 3\na_seconds_sum 0.5\na_seconds_count 3\n"
        );
    }
}
