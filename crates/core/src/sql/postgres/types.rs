//! PostgreSQL's built-in types by OID (`pg_type.dat`) that have a decoder or encoder of their own.

pub(super) type Oid = u32;

pub(super) const BOOL: Oid = 16;
pub(super) const BYTEA: Oid = 17;
pub(super) const INT8: Oid = 20;
pub(super) const INT2: Oid = 21;
pub(super) const INT4: Oid = 23;
pub(super) const TEXT: Oid = 25;
pub(super) const OID: Oid = 26;
pub(super) const JSON: Oid = 114;
pub(super) const FLOAT4: Oid = 700;
pub(super) const FLOAT8: Oid = 701;
pub(super) const DATE: Oid = 1082;
pub(super) const TIME: Oid = 1083;
pub(super) const TIMESTAMP: Oid = 1114;
pub(super) const TIMESTAMPTZ: Oid = 1184;
pub(super) const INTERVAL: Oid = 1186;
pub(super) const TIMETZ: Oid = 1266;
pub(super) const NUMERIC: Oid = 1700;
pub(super) const UUID: Oid = 2950;
pub(super) const JSONB: Oid = 3802;

/// Name, type, type of its array (0 for none).
const BUILT_IN: &[(&str, Oid, Oid)] = &[
    ("bool", BOOL, 1000),
    ("bytea", BYTEA, 1001),
    ("char", 18, 1002),
    ("name", 19, 1003),
    ("int8", INT8, 1016),
    ("int2", INT2, 1005),
    // Its category is array, but it is written as numbers with spaces between them.
    ("int2vector", 22, 1006),
    ("int4", INT4, 1007),
    ("regproc", 24, 1008),
    ("text", TEXT, 1009),
    ("oid", OID, 1028),
    ("tid", 27, 1010),
    ("xid", 28, 1011),
    ("cid", 29, 1012),
    ("oidvector", 30, 1013),
    ("json", JSON, 199),
    ("xml", 142, 143),
    ("point", 600, 1017),
    ("lseg", 601, 1018),
    ("path", 602, 1019),
    // The one built-in type whose array literal is separated by ";".
    ("box", 603, 0),
    ("polygon", 604, 1027),
    ("line", 628, 629),
    ("cidr", 650, 651),
    ("float4", FLOAT4, 1021),
    ("float8", FLOAT8, 1022),
    ("unknown", 705, 0),
    ("circle", 718, 719),
    ("macaddr8", 774, 775),
    ("money", 790, 791),
    ("macaddr", 829, 1040),
    ("inet", 869, 1041),
    ("bpchar", 1042, 1014),
    ("varchar", 1043, 1015),
    ("date", DATE, 1182),
    ("time", TIME, 1183),
    ("timestamp", TIMESTAMP, 1115),
    ("timestamptz", TIMESTAMPTZ, 1185),
    ("interval", INTERVAL, 1187),
    ("timetz", TIMETZ, 1270),
    ("bit", 1560, 1561),
    ("varbit", 1562, 1563),
    ("numeric", NUMERIC, 1231),
    ("refcursor", 1790, 2201),
    ("regclass", 2205, 2210),
    ("regtype", 2206, 2211),
    ("record", 2249, 0),
    ("void", 2278, 0),
    ("uuid", UUID, 2951),
    ("pg_lsn", 3220, 3221),
    ("tsvector", 3614, 3643),
    ("tsquery", 3615, 3645),
    ("jsonb", JSONB, 3807),
    ("int4range", 3904, 3905),
    ("numrange", 3906, 3907),
    ("tsrange", 3908, 3909),
    ("tstzrange", 3910, 3911),
    ("daterange", 3912, 3913),
    ("int8range", 3926, 3927),
    ("jsonpath", 4072, 4073),
    ("xid8", 5069, 271),
];

/// The type of a column or parameter, looked up once per statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) oid: Oid,
    /// As in `pg_type.typname`; arrays begin with `_`. Empty when unknown.
    pub(super) name: String,
    /// The type of an array's elements.
    pub(super) element: Option<Oid>,
}

impl Type {
    /// A built-in type; `None` for types that must be looked up in the database.
    pub(super) fn built_in(oid: Oid) -> Option<Self> {
        BUILT_IN.iter().find_map(|&(name, scalar, array)| {
            if oid == scalar {
                Some(Self::scalar(oid, name))
            } else if oid == array && array != 0 {
                Some(Self::array(oid, format!("_{name}"), scalar))
            } else {
                None
            }
        })
    }

    pub(super) fn scalar(oid: Oid, name: &str) -> Self {
        Self {
            oid,
            name: name.to_owned(),
            element: None,
        }
    }

    pub(super) fn array(oid: Oid, name: String, element: Oid) -> Self {
        Self {
            oid,
            name,
            element: Some(element),
        }
    }

    pub(super) fn unknown(oid: Oid) -> Self {
        Self::scalar(oid, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_oid_has_two_meanings() {
        let mut oids: Vec<Oid> = BUILT_IN
            .iter()
            .flat_map(|&(_, scalar, array)| [scalar, array])
            .filter(|&oid| oid != 0)
            .collect();
        let all = oids.len();
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), all);
    }

    #[test]
    fn an_array_knows_its_element() {
        assert_eq!(Type::built_in(1007).unwrap().element, Some(INT4));
        assert_eq!(Type::built_in(INT4).unwrap().element, None);
        assert_eq!(Type::built_in(999_999), None);
    }
}
