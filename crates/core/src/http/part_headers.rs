//! The boundary of a form and the headers of its parts.

/// The longest boundary that RFC 2046 §5.1.1 allows.
pub(super) const BOUNDARY: usize = 70;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MultipartError {
    #[error(
        "the body is not multipart/form-data with a boundary of 1 to {BOUNDARY} characters, but {found}"
    )]
    Kind { found: String },
    #[error("the form is malformed: {0}")]
    Malformed(&'static str),
    #[error("the form has more than {limit} parts")]
    Parts { limit: usize },
    #[error("the form has more than {limit} files")]
    Files { limit: usize },
    #[error("the head of a part of the form has more than {limit} bytes")]
    Head { limit: usize },
    #[error("the values of the form have more than {limit} bytes")]
    Fields { limit: u64 },
    #[error("the file \"{name}\" of the form has more than {limit} bytes")]
    File { name: String, limit: u64 },
}

/// The headers of a part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PartHead {
    /// The name of the field.
    pub(super) name: Vec<u8>,
    /// As the client sends it: any bytes. A part without a file name is a value.
    pub(super) file_name: Option<Vec<u8>>,
    pub(super) content_type: Option<Vec<u8>>,
}

pub(super) fn boundary(content_type: Option<&[u8]>) -> Result<Vec<u8>, MultipartError> {
    let refused = || MultipartError::Kind {
        found: content_type.map_or_else(
            || "without a content type".to_owned(),
            |kind| format!("\"{}\"", String::from_utf8_lossy(kind)),
        ),
    };
    let (kind, parameters) = parameters(content_type.ok_or_else(refused)?);
    if !kind.eq_ignore_ascii_case(b"multipart/form-data") {
        return Err(refused());
    }
    let boundary = parameter(parameters, b"boundary").filter(|boundary| {
        let is_allowed =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
        (1..=BOUNDARY).contains(&boundary.len())
            && boundary.iter().all(is_allowed)
            && !boundary.ends_with(b" ")
    });
    boundary.ok_or_else(refused)
}

pub(super) fn part_head(head: &[u8]) -> Result<PartHead, MultipartError> {
    let mut part = PartHead::default();
    let mut name = None;
    for line in lines(head) {
        let colon = line.iter().position(|byte| *byte == b':');
        let Some((field, value)) = colon.map(|at| (&line[..at], line[at + 1..].trim_ascii()))
        else {
            return Err(MultipartError::Malformed(
                "a line in the head of a part is not a header field",
            ));
        };
        if field.eq_ignore_ascii_case(b"content-disposition") {
            let (kind, parameters) = parameters(value);
            if !kind.eq_ignore_ascii_case(b"form-data") {
                return Err(MultipartError::Malformed("a part is not form-data"));
            }
            name = parameter(parameters, b"name");
            part.file_name = parameter(parameters, b"filename");
        } else if field.eq_ignore_ascii_case(b"content-type") {
            part.content_type = Some(value.to_vec());
        }
    }
    part.name = name.ok_or(MultipartError::Malformed("a part has no name"))?;
    Ok(part)
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = head.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty())
}

/// The value before the first semicolon, and the rest.
fn parameters(value: &[u8]) -> (&[u8], &[u8]) {
    let end = value
        .iter()
        .position(|byte| *byte == b';')
        .unwrap_or(value.len());
    (value[..end].trim_ascii(), &value[end..])
}

/// The first `; name=value` or `; name="value"`. In quotes a backslash escapes quotes only, because browsers do not escape backslashes
/// in paths, and write `%22` for quotes.
fn parameter(mut parameters: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
    loop {
        parameters = parameters.strip_prefix(b";")?.trim_ascii_start();
        let end = parameters
            .iter()
            .position(|byte| matches!(byte, b'=' | b';'))?;
        let name = parameters[..end].trim_ascii();
        if parameters[end] == b';' {
            parameters = &parameters[end..];
            continue;
        }
        let (value, rest) = parameter_value(parameters[end + 1..].trim_ascii_start())?;
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        parameters = rest.trim_ascii_start();
    }
}

/// The value and the rest; `None` if a quote is not closed.
fn parameter_value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text
            .iter()
            .position(|byte| *byte == b';')
            .unwrap_or(text.len());
        return Some((text[..end].trim_ascii_end().to_vec(), &text[end..]));
    };
    let mut value = Vec::new();
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some((value, &quoted[at + 1..])),
            b'\\' if quoted.get(at + 1) == Some(&b'"') && quoted[at + 2..].contains(&b'"') => {
                value.push(b'"');
                at += 2;
            }
            byte => {
                value.push(*byte);
                at += 1;
            }
        }
    }
}
