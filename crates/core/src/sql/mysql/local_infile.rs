//! `LOAD DATA LOCAL INFILE`: the server requests a file of this machine, which a hostile server could do at any time.

pub(super) const HINT: &str = "LOAD DATA LOCAL needs local_infile=on in the DSN";

/// The permission, and the state of an upload.
pub(super) struct Infile {
    pub(super) is_allowed: bool,
    /// The name of the file that the server waits for.
    pub(super) asked: Option<Vec<u8>>,
    /// Sequence number of the next packet.
    pub(super) sequence: u8,
    pub(super) is_being_sent: bool,
}

impl Infile {
    pub(super) fn new(is_allowed: bool) -> Self {
        Self {
            is_allowed,
            asked: None,
            sequence: 0,
            is_being_sent: false,
        }
    }

    pub(super) fn ask(&mut self, name: Vec<u8>, sequence: u8) {
        self.asked = Some(name);
        self.sequence = sequence;
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether an upload is incomplete, after which the connection cannot be used.
    pub(super) fn is_sending(&self) -> bool {
        self.is_being_sent || self.is_asked()
    }
}
