use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A borrower, as error messages and leak reports name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Borrower {
    /// The task, 0 for code outside of tasks. `None` when unknown: such a borrower is never considered self-blocked.
    pub task: Option<u64>,
    /// The line of the borrow.
    pub file: Option<Rc<str>>,
    pub line: u32,
    /// The call stack, one call per line. Only with a leak threshold.
    pub stack: Option<Rc<str>>,
}

/// A borrower that holds a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub borrower: Borrower,
    pub held: Duration,
    /// The last statement on the connection.
    pub statement: Option<Arc<str>>,
}

/// Characters of a statement that a message shows.
const STATEMENT_LIMIT: usize = 80;

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.borrower.task {
            Some(0) => out.write_str("code outside of tasks")?,
            Some(task) => write!(out, "task #{task}")?,
            None => out.write_str("an unknown task")?,
        }
        write!(out, " for {:.3} s", self.held.as_secs_f64())?;
        if let Some(file) = &self.borrower.file {
            write!(out, " from {file}:{}", self.borrower.line)?;
        }
        if let Some(statement) = &self.statement {
            write!(out, ", last statement: {}", shorten(statement))?;
        }
        Ok(())
    }
}

fn shorten(statement: &str) -> String {
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(STATEMENT_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Holders in an error message, the longest first, at most ten.
pub(super) struct Holders<'a>(pub(super) &'a [Holder]);

impl fmt::Display for Holders<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LISTED: usize = 10;
        for (index, holder) in self.0.iter().take(LISTED).enumerate() {
            let separator = if index == 0 { "; held by " } else { "; " };
            write!(out, "{separator}{holder}")?;
        }
        match self.0.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(out, "; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_described_with_task_age_line_and_statement() {
        let holder = Holder {
            borrower: Borrower {
                task: Some(7),
                file: Some("/app/job.php".into()),
                line: 12,
                stack: None,
            },
            held: Duration::from_millis(1_250),
            statement: Some("SELECT\n  1".into()),
        };
        assert_eq!(
            holder.to_string(),
            "task #7 for 1.250 s from /app/job.php:12, last statement: SELECT 1"
        );
        let many = vec![holder; 12];
        assert!(Holders(&many).to_string().ends_with("; and 2 more"));
    }
}
