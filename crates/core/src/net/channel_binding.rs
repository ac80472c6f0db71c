//! `tls-server-end-point`: the hash of the server's certificate that binds an authentication to its TLS connection.

use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;
/// The field of RSASSA-PSS parameters that names the hash.
const PSS_HASH: u8 = 0xa0;

const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01";
const ECDSA: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03";
const ECDSA_SHA1: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x01";
const HASHES: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02";
const PSS: u8 = 10;

enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// The hash of a certificate (DER) with the hash function of its signature, with SHA-256 in place of MD5 and SHA-1 (RFC 5929
/// §4.1). `None` where the signature has no hash function of its own (Ed25519) or an unknown one: there is no binding then.
pub(crate) fn tls_server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let hash = signature_hash(certificate)?;
    Some(match hash {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

/// RFC 5280 §4.1: a certificate is what is signed, the algorithm, the signature.
fn signature_hash(certificate: &[u8]) -> Option<Hash> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(certificate, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (name, parameters) = element(algorithm, OBJECT)?;
    match (name.strip_prefix(RSA), name.strip_prefix(ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([2])) => Some(Hash::Sha256),
        (Some([12]), _) | (_, Some([3])) => Some(Hash::Sha384),
        (Some([13]), _) | (_, Some([4])) => Some(Hash::Sha512),
        (Some([PSS]), _) => pss_hash(parameters),
        _ if name == ECDSA_SHA1 => Some(Hash::Sha256),
        _ => None,
    }
}

/// RFC 4055 §3.1; without a hash in the parameters it is SHA-1.
fn pss_hash(parameters: &[u8]) -> Option<Hash> {
    let (parameters, _) = element(parameters, SEQUENCE)?;
    let Some((hash, _)) = element(parameters, PSS_HASH) else {
        return Some(Hash::Sha256);
    };
    let (hash, _) = element(hash, SEQUENCE)?;
    let (name, _) = element(hash, OBJECT)?;
    match name.strip_prefix(HASHES)? {
        [1] => Some(Hash::Sha256),
        [2] => Some(Hash::Sha384),
        [3] => Some(Hash::Sha512),
        _ => None,
    }
}

/// The content of the DER element with this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[tag])?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            let length = bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x81, content.len() as u8], content].concat()
    }

    fn certificate(algorithm: &[u8], parameters: &[u8]) -> Vec<u8> {
        let algorithm = der(SEQUENCE, &[&der(OBJECT, algorithm), parameters].concat());
        der(
            SEQUENCE,
            &[der(SEQUENCE, b"signed"), algorithm, der(3, b"signature")].concat(),
        )
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let pss = |hash: u8| {
            let name = der(OBJECT, &[HASHES, &[hash]].concat());
            der(SEQUENCE, &der(PSS_HASH, &der(SEQUENCE, &name)))
        };
        for (algorithm, parameters, length) in [
            ([RSA, &[11]].concat(), vec![], Some(32)),
            ([RSA, &[5]].concat(), vec![], Some(32)),
            ([RSA, &[12]].concat(), vec![], Some(48)),
            ([RSA, &[13]].concat(), vec![], Some(64)),
            ([ECDSA, &[3]].concat(), vec![], Some(48)),
            (ECDSA_SHA1.to_vec(), vec![], Some(32)),
            ([RSA, &[PSS]].concat(), pss(3), Some(64)),
            ([RSA, &[PSS]].concat(), der(SEQUENCE, b""), Some(32)),
            (b"\x2b\x65\x70".to_vec(), vec![], None),
        ] {
            let certificate = certificate(&algorithm, &parameters);
            let hash = tls_server_end_point(&certificate);
            assert_eq!(hash.map(|hash| hash.len()), length, "{algorithm:?}");
        }
    }

    #[test]
    fn a_certificate_cut_anywhere_has_no_hash() {
        let whole = certificate(&[RSA, &[11]].concat(), &[]);
        for end in 0..whole.len() {
            assert_eq!(tls_server_end_point(&whole[..end]), None);
        }
    }
}
