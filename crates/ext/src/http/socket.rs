//! `Weft\Native\HttpSocket`

use bytes::Bytes;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};

use weft_core::http::{Call, Message, UpgradeError, WebSocket, WebSocketLimits};

use super::stream::gone;
use crate::amqp_table::binary;
use crate::convert::array_zval;
use crate::failure::{Detail, Failure};
use crate::outcome::Payload;
use crate::process::Process;
use crate::runtime::start;

/// A WebSocket.
#[php_class]
#[php(name = "Weft\\Native\\HttpSocket")]
#[php(flags = ext_php_rs::flags::ClassFlags::Final)]
pub struct HttpSocket {
    socket: WebSocket,
}

/// `None` when the client has gone away.
pub fn open(
    call: &Call,
    subprotocol: Option<String>,
    limits: WebSocketLimits,
) -> PhpResult<Option<HttpSocket>> {
    let opened = call.accept_websocket(subprotocol.as_deref(), limits);
    let socket = opened.map_err(upgrade_failure)?;
    Ok(socket.map(|socket| HttpSocket { socket }))
}

#[php_impl]
impl HttpSocket {
    pub fn receive(&self) -> PhpResult<i64> {
        let receiving = self.socket.receive();
        start(async move {
            let message = receiving.await;
            Ok(Payload::build(move || {
                message.map_or_else(|| Ok(Zval::null()), |message| pair(&message))
            }))
        })
    }

    pub fn send(&self, message: &Zval, is_binary: bool) -> PhpResult<i64> {
        Process::refuse_after_fork()?;
        let bytes = message
            .zend_str()
            .ok_or_else(|| Failure::new("usage", "a message must be a string"))?;
        let bytes = Bytes::copy_from_slice(bytes.as_bytes());
        let message = match is_binary {
            true => Message::binary(bytes),
            false => Message::text(bytes).map_err(|_| {
                let message = "a text message must be UTF-8: send other bytes with sendBinary()";
                Failure::new("usage", message)
            })?,
        };
        if self.socket.send(message).map_err(gone)? {
            return Ok(0);
        }
        let room = self.socket.room();
        start(async move { room.await.map(|()| Payload::Null).map_err(gone) })
    }

    pub fn close(&self, code: i64, reason: &str) {
        let code = u16::try_from(code).unwrap_or(1011);
        self.socket.close(code, reason);
    }

    pub fn close_code(&self) -> Option<i64> {
        self.socket.closed().map(|(code, _)| code.into())
    }

    pub fn close_reason(&self) -> Zval {
        let reason = self.socket.closed().map(|(_, reason)| reason);
        binary(reason.unwrap_or_default().as_bytes())
    }
}

impl Drop for HttpSocket {
    fn drop(&mut self) {
        self.socket.close(1001, "the handler has gone");
    }
}

/// `[data, is binary]`
fn pair(message: &Message) -> PhpResult<Zval> {
    let mut pair = ZendHashTable::new();
    pair.push(binary(message.as_bytes()))?;
    pair.push(message.is_binary())?;
    Ok(array_zval(pair))
}

fn upgrade_failure(error: UpgradeError) -> Failure {
    let status = i64::from(error.status().as_u16());
    Failure::new("http.upgrade", error.to_string()).with("status", Detail::Int(status))
}
