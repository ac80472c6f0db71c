//! Any input from a server is decoded to a value or to [`Malformed`].

use bytes::{BufMut, BytesMut};
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket};
use proptest::collection::vec;
use proptest::prelude::*;

use super::failure::ServerFailure;
use super::login::has_sound_length;
use super::reply::{Answer, Capabilities, Command, Reply, Step};
use super::wire::{Framing, Malformed, Reader, frame, put_length, take_packet};
use crate::sql::Value;

const COMMANDS: [Command; 5] = [
    Command::Control,
    Command::Prepare,
    Command::Query,
    Command::Execute,
    Command::Fetch,
];

/// All column types by their code in a definition.
const TYPES: [u8; 27] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 245, 246, 247, 248, 249, 250, 251, 252,
    253, 254, 255,
];

fn capabilities() -> impl Strategy<Value = Capabilities> {
    any::<[bool; 3]>().prop_map(|[without_eof, tracks_session, extended]| Capabilities {
        without_eof,
        tracks_session,
        extended,
    })
}

/// Reads packets until the answer is complete or invalid.
fn read(capabilities: Capabilities, command: Command, packets: &[Vec<u8>]) -> Option<Answer> {
    let mut reply = Reply::new(capabilities, 0);
    for packet in packets {
        match reply.packet(&command, packet) {
            Ok(Step::Complete(answer)) => return Some(answer),
            Ok(Step::More | Step::File(_)) => {}
            Err(Malformed) => return None,
        }
    }
    None
}

fn string(out: &mut BytesMut, text: &[u8]) {
    put_length(out, text.len() as u64);
    out.put_slice(text);
}

fn definition(code: u8, extended: bool) -> Vec<u8> {
    let mut out = BytesMut::new();
    for text in ["def", "schema", "table", "table", "name", "name"] {
        string(&mut out, text.as_bytes());
    }
    if extended {
        string(&mut out, b"\x01\x04json");
    }
    out.put_u8(12);
    out.put_u16_le(45);
    out.put_u32_le(11);
    out.put_u8(code);
    out.put_u16_le(0);
    out.put_u8(3);
    out.put_u16_le(0);
    out.to_vec()
}

/// An answer of one row whose columns have these types, with the row as given.
fn answer(capabilities: Capabilities, codes: &[u8], row: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = vec![vec![codes.len() as u8]];
    let definitions = codes
        .iter()
        .map(|code| definition(*code, capabilities.extended));
    packets.extend(definitions);
    let end = match capabilities.without_eof {
        true => vec![0xfe, 0, 0, 2, 0, 0, 0],
        false => vec![0xfe, 0, 0, 2, 0],
    };
    if !capabilities.without_eof {
        packets.push(end.clone());
    }
    packets.push(row.to_vec());
    packets.push(end);
    packets
}

#[test]
fn an_answer_that_is_sound_is_read() {
    for without_eof in [true, false] {
        let capabilities = Capabilities {
            without_eof,
            ..Capabilities::default()
        };
        let packets = answer(capabilities, &[3, 253], &[0, 0, 7, 0, 0, 0, 2, b'o', b'k']);
        let Some(Answer::Done(result)) = read(capabilities, Command::Execute, &packets) else {
            panic!("{without_eof}")
        };
        let expected = vec![Value::Int(7), Value::Text("ok".to_owned())];
        assert_eq!(result.rows, [expected]);
    }
}

proptest! {
    #![proptest_config(crate::proptest_config::with_at_least(4_000))]

    #[test]
    fn any_bytes_are_framed_without_reading_beyond_them(input in vec(any::<u8>(), 0..64)) {
        let mut buffer = BytesMut::from(&input[..]);
        match frame(&buffer) {
            Framing::Whole { total } => {
                prop_assert!(total <= input.len());
                let (packet, _) = take_packet(&mut buffer, total);
                prop_assert!(packet.len() + buffer.len() < input.len());
            }
            Framing::Missing(bytes) => prop_assert!(bytes > 0),
        }
    }

    #[test]
    fn any_packets_are_an_answer_or_malformed(
        capabilities in capabilities(),
        command in 0..COMMANDS.len(),
        packets in vec(vec(prop_oneof![any::<u8>(), Just(0), Just(0xfe), Just(0xff), Just(1)], 0..40), 0..12),
    ) {
        read(capabilities, COMMANDS[command], &packets);
    }

    #[test]
    fn any_row_of_any_type_is_values_or_malformed(
        capabilities in capabilities(),
        binary in any::<bool>(),
        codes in vec(prop::sample::select(&TYPES[..]), 1..6),
        row in vec(prop_oneof![any::<u8>(), 0..13_u8], 0..60),
    ) {
        let command = if binary { Command::Execute } else { Command::Query };
        let row = [&[0][..], &row].concat();
        read(capabilities, command, &answer(capabilities, &codes, &row));
    }

    #[test]
    fn a_bit_that_is_flipped_or_an_end_that_is_cut_off_does_no_harm(
        capabilities in capabilities(),
        binary in any::<bool>(),
        codes in vec(prop::sample::select(&TYPES[..]), 1..6),
        packet in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        bit in 0..8,
        cut in any::<bool>(),
    ) {
        let command = if binary { Command::Execute } else { Command::Query };
        let mut packets = answer(capabilities, &codes, &[0, 0, 4, b'1', b'2', b'3', b'4', 1, b'5', 0, 0, 0, 0, 0, 0, 0]);
        let packet = packet.get(&packets).clone();
        let at = packets.iter().position(|other| *other == packet).unwrap_or(0);
        let place = place.index(packets[at].len().max(1));
        match cut {
            true => packets[at].truncate(place),
            false => packets[at][place] ^= 1_u8 << bit,
        }
        read(capabilities, command, &packets);
    }

    #[test]
    fn any_failure_is_an_error_or_malformed(body in vec(any::<u8>(), 0..80)) {
        if let Ok(failure) = ServerFailure::read(&body) {
            let _ = failure.clone().into_error("SELECT 1").to_string();
            let _ = failure.into_connect_error("target").to_string();
        }
    }

    #[test]
    fn any_fields_are_read_or_malformed(body in vec(any::<u8>(), 0..20)) {
        let mut reader = Reader(&body);
        while !reader.is_empty() && reader.text().is_ok() {}
        let mut reader = Reader(&body);
        while !reader.is_empty() && reader.length().is_ok() {}
    }

    #[test]
    fn any_greeting_and_any_challenge_is_answered_or_refused(
        body in vec(any::<u8>(), 0..120),
        version in any::<bool>(),
    ) {
        let body = if version { [&[10][..], b"8.0.0\0", &body].concat() } else { body };
        if has_sound_length(&body)
            && let Ok(greeting) = ParseBuf(&body).parse::<HandshakePacket<'_>>(()) {
            let _ = (greeting.nonce(), greeting.auth_plugin(), greeting.connection_id());
        }
        if let Ok(request) = ParseBuf(&body).parse::<AuthSwitchRequest<'_>>(()) {
            let _ = (request.plugin_data().len(), request.auth_plugin());
        }
        for plugin in [
            AuthPlugin::MysqlNativePassword,
            AuthPlugin::CachingSha2Password,
            AuthPlugin::Ed25519,
        ] {
            let Ok(mut procedure) = plugin.init() else { continue };
            let _ = procedure.run(&Stranger, &body);
            let _ = procedure.run(&Stranger, &body);
        }
    }
}

struct Stranger;

impl Context for &Stranger {
    fn pass(&self) -> &[u8] {
        b"password"
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        b"12345678901234567890"
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}
