//! Reading ends in a value or in an error, whatever a broker sends.

use proptest::collection::vec;
use proptest::prelude::*;

use super::frame::{self, ContentHeader};
use super::method::Incoming;
use super::tests::{every_property, every_type};
use super::wire::Reader;
use super::{FieldTable, Properties, outgoing};

proptest! {
    #![proptest_config(crate::proptest_config::with_at_least(4_000))]

    #[test]
    fn any_bytes_are_frames_or_refused(bytes in vec(any::<u8>(), 0..96)) {
        let _ = frame::parse(&bytes, 4096);
        let _ = outgoing::messages(&bytes).count();
        let _ = outgoing::parts(&bytes);
        let _ = ContentHeader::decode(&bytes);
    }

    #[test]
    fn any_arguments_of_any_method_are_read_or_refused(
        class in prop::sample::select(vec![10_u16, 20, 40, 50, 60, 85]),
        method in 10_u16..=121,
        arguments in vec(any::<u8>(), 0..96),
    ) {
        let bytes = [&class.to_be_bytes()[..], &method.to_be_bytes(), &arguments].concat();
        let _ = Incoming::decode(&bytes);
    }

    #[test]
    fn a_byte_that_is_changed_or_an_end_that_is_cut_off_does_no_harm(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        end in any::<prop::sample::Index>(),
    ) {
        let (mut table, mut properties) = (Vec::new(), Vec::new());
        every_type().encode(&mut table);
        every_property().encode(&mut properties);
        for bytes in [&mut table, &mut properties] {
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
        }
        let _ = FieldTable::decode(&mut Reader::new(&table));
        let _ = Properties::decode(&properties);
    }
}
