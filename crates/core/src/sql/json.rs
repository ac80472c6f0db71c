//! Lists as JSON arrays, for databases without an array type.

use crate::sql::Value;

/// # Errors
/// The reason why an item cannot be encoded.
pub(super) fn encode(items: &[Value]) -> Result<String, String> {
    let mut output = String::from("[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            output.push(',');
        }
        output.push_str(&item_text(item)?);
    }
    output.push(']');
    Ok(output)
}

fn item_text(item: &Value) -> Result<String, String> {
    match item {
        Value::Null => Ok("null".into()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Float(number) if number.is_finite() => Ok(serde_json::json!(number).to_string()),
        Value::Float(_) => {
            Err("is a list with NaN or an infinite number, which JSON cannot represent".into())
        }
        Value::Text(text) | Value::Date(text) | Value::Timestamp(text) => {
            Ok(serde_json::Value::from(text.as_str()).to_string())
        }
        Value::Json(document) => Ok(document.clone()),
        Value::Bytes(_) => Err("is a list with bytes, which JSON cannot represent".into()),
        Value::List(items) => encode(items),
    }
}
