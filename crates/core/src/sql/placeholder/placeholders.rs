/// The placeholders of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placeholders {
    None,
    Positional(usize),
    /// Names in order of their number; a name used twice has one number.
    Named(Vec<String>),
}

impl Placeholders {
    /// The number of parameters of the rewritten text.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Positional(count) => *count,
            Self::Named(names) => names.len(),
        }
    }
}

/// `:name, :other`
pub(super) fn list(names: &[impl AsRef<str>]) -> String {
    names
        .iter()
        .map(|name| format!(":{}", name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}
