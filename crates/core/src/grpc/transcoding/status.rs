use hyper::StatusCode;
use serde_json::Value;

use super::super::status::{Code, Status};

/// The HTTP status for a gRPC status, by `google.rpc.Code`.
pub(in super::super) fn http_status(code: Code) -> StatusCode {
    let number = match code.number() {
        0 => 200,
        1 => 499,
        3 | 9 | 11 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 501,
        14 => 503,
        16 => 401,
        _ => 500,
    };
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// An error as JSON (AIP-193). `details` is a JSON list.
pub(in super::super) fn report(http: StatusCode, status: &Status, details: &str) -> String {
    format!(
        r#"{{"error":{{"code":{},"message":{},"status":"{}","details":{}}}}}"#,
        http.as_u16(),
        Value::from(status.message.as_ref()),
        status.code.name(),
        details,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_of_http() {
        let numbers = [
            200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401,
        ];
        for (code, number) in (0..).zip(numbers) {
            assert_eq!(
                http_status(Code::new(code).unwrap()).as_u16(),
                number,
                "{code}"
            );
        }
    }

    #[test]
    fn a_failure_is_json_whatever_its_message_is() {
        let status = Status::new(Code::UNKNOWN, "a \"b\"\n");
        let text = report(http_status(status.code), &status, "[]");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["error"]["message"], "a \"b\"\n");
        assert_eq!(value["error"]["code"], 500);
        assert_eq!(value["error"]["status"], "UNKNOWN");
    }
}
