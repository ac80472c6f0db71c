use std::collections::BTreeMap;
use std::fmt::Write;

/// Merges the texts of several processes: each sample gets the label `worker` with the name of its process.
///
/// The samples of a process whose name is empty stay unchanged.
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
        merged.push_str(&family.samples);
    }
    merged
}

#[derive(Default)]
struct Family<'a> {
    head: Vec<&'a str>,
    samples: String,
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
        } else if !line.is_empty() {
            let samples = &mut families.entry(name).or_default().samples;
            samples.push_str(&labelled(line, worker));
            samples.push('\n');
        }
    }
}

fn labelled(sample: &str, worker: &str) -> String {
    if worker.is_empty() {
        return sample.to_owned();
    }
    let name = sample.find(['{', ' ']).map_or(sample, |end| &sample[..end]);
    let rest = &sample[name.len()..];
    match rest.strip_prefix('{') {
        Some(rest) => format!("{name}{{worker=\"{worker}\",{rest}"),
        None => format!("{name}{{worker=\"{worker}\"}}{rest}"),
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
}
