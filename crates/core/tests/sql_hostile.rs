//! Servers of PostgreSQL and MySQL that break their protocol: each message cut, lengthened, replaced, repeated, left out and
//! moved, at each step of several conversations. Every call ends without a panic and without taking memory for what a message
//! only announces; an error names the server and what the client waited for; a connection on which the protocol was broken is
//! never used again, and the next borrower gets another one.

// Clippy exempts the tests themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/peak_memory.rs"]
mod peak_memory;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use peak_memory::PeakMemory;
use tokio::task::LocalSet;
use weft_core::pool::PoolOptions;
use weft_core::sql::{Database, Error, Hooks, Statement};

/// Only ends a test that hangs.
const DEADLINE: Duration = Duration::from_secs(600);
/// Bytes that a client may need for one conversation.
const MEMORY: usize = 4 << 20;

/// The messages of a server once its client has said something.
#[derive(Clone)]
struct Step {
    /// Whether the client has said all that this answers.
    is_due: fn(&[u8]) -> bool,
    messages: Vec<Vec<u8>>,
}

type Script = Vec<Step>;

/// The use that a client makes of its database.
type Talk = Rc<dyn Fn(Database) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>>;

/// How messages of a protocol look.
#[derive(Clone, Copy)]
struct Protocol {
    scheme: &'static str,
    /// The server speaks first.
    greets: bool,
    /// Writes the length of a message, for so many bytes behind the header.
    patch_length: fn(&mut [u8], i64),
    header: usize,
    kinds: &'static [u8],
    /// Where the byte is that tells the kind of a message.
    kind_at: usize,
}

/// A client that speaks, and the server's part in it.
struct Conversation {
    name: &'static str,
    protocol: Protocol,
    /// Options of the DSN.
    options: &'static str,
    script: Script,
    /// Steps before this one are the log-in, which another conversation breaks.
    first: usize,
    talk: Talk,
    /// Without these bytes from the server the talk must not succeed.
    proof: &'static [u8],
}

fn talk<F: Future<Output = Result<(), Error>> + 'static>(
    talk: impl Fn(Database) -> F + 'static,
) -> Talk {
    Rc::new(move |database| Box::pin(talk(database)))
}

fn statement(sql: &str) -> Statement {
    Statement::new(sql, vec![])
}

fn step(messages: Vec<Vec<u8>>) -> Step {
    Step {
        is_due: |said| !said.is_empty(),
        messages,
    }
}

// PostgreSQL

const POSTGRES: Protocol = Protocol {
    scheme: "postgres",
    greets: false,
    patch_length: |message, length| {
        if let Some(place) = message.get_mut(1..5) {
            place.copy_from_slice(&(length as u32).wrapping_add(4).to_be_bytes());
        }
    },
    header: 5,
    kinds: b"RSKZ123tTnDCEINAGHWcdsv?",
    kind_at: 0,
};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag][..], &length, body].concat()
}

/// The client has sent `Sync`.
fn synced(messages: Vec<Vec<u8>>) -> Step {
    Step {
        is_due: |said| said.ends_with(b"S\0\0\0\x04"),
        messages,
    }
}

/// The client has sent `Flush`.
fn flushed(messages: Vec<Vec<u8>>) -> Step {
    Step {
        is_due: |said| said.ends_with(b"H\0\0\0\x04"),
        messages,
    }
}

fn postgres_log_in() -> Step {
    step(vec![
        message(b'R', b"\0\0\0\0"),
        message(b'S', b"server_version\x0015\0"),
        message(b'K', b"\0\0\0\x07\0\0\0\x08"),
        message(b'Z', b"I"),
    ])
}

/// `RowDescription` of one integer.
fn postgres_columns() -> Vec<u8> {
    message(
        b'T',
        b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0",
    )
}

/// The answer to a statement without a name.
fn postgres_answer(rows: usize, command: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = vec![message(b'1', b""), message(b'2', b"")];
    messages.push(match rows {
        0 => message(b'n', b""),
        _ => postgres_columns(),
    });
    messages.extend((0..rows).map(|_| message(b'D', b"\0\x01\0\0\0\x011")));
    messages.push(message(b'C', command));
    messages
}

fn postgres(
    name: &'static str,
    mut steps: Vec<Step>,
    proof: &'static [u8],
    talk: Talk,
) -> Conversation {
    steps.insert(0, postgres_log_in());
    Conversation {
        name,
        protocol: POSTGRES,
        options: "&statement_cache=0",
        script: steps,
        first: 1,
        talk,
        proof,
    }
}

/// The answers to a SELECT that is prepared, then executed.
fn postgres_prepared() -> [Step; 2] {
    [
        step(vec![
            message(b'1', b""),
            message(b't', b"\0\0"),
            postgres_columns(),
            message(b'Z', b"I"),
        ]),
        step(postgres_executed(b"SELECT 1\0")),
    ]
}

/// The answer to a prepared SELECT.
fn postgres_executed(command: &[u8]) -> Vec<Vec<u8>> {
    vec![
        message(b'2', b""),
        message(b'D', b"\0\x01\0\0\0\x04\0\0\0\x01"),
        message(b'C', command),
        message(b'Z', b"I"),
    ]
}

fn postgres_select() -> Conversation {
    let log_in_too = postgres(
        "a prepared SELECT",
        postgres_prepared().to_vec(),
        b"",
        talk(async |database: Database| select(&database).await),
    );
    Conversation {
        options: "",
        first: 0,
        ..log_in_too
    }
}

/// Two statements wait for the only connection while a third one has it, and share a round trip then.
fn postgres_shared_round_trip() -> Conversation {
    let shared = [
        postgres_executed(b"SELECT 1\0"),
        postgres_executed(b"SELECT 2\0"),
    ];
    let steps = [
        postgres_prepared().to_vec(),
        vec![
            step(postgres_executed(b"SELECT 1\0")),
            step(shared.concat()),
        ],
    ];
    let prepares_too = postgres(
        "a shared round trip",
        steps.concat(),
        b"SELECT 2\0",
        talk(async |database: Database| {
            select(&database).await?;
            let select = || select(&database);
            let outcomes = tokio::join!(select(), select(), select());
            outcomes.0.and(outcomes.1).and(outcomes.2)
        }),
    );
    Conversation {
        options: "&max_pipeline=8",
        // A connection that is lost before is replaced by one on which they prepare and succeed.
        first: 4,
        ..prepares_too
    }
}

fn postgres_transaction() -> Conversation {
    let first = [
        postgres_answer(0, b"BEGIN\0"),
        postgres_answer(1, b"SELECT 1\0"),
        vec![message(b'Z', b"T")],
    ];
    let last = [
        postgres_answer(0, b"INSERT 0 1\0"),
        postgres_answer(0, b"COMMIT\0"),
        vec![message(b'Z', b"I")],
    ];
    postgres(
        "a transaction",
        vec![synced(first.concat()), synced(last.concat())],
        b"COMMIT\0",
        talk(transfer),
    )
}

fn postgres_copy_in() -> Conversation {
    let begin = vec![
        message(b'1', b""),
        message(b'2', b""),
        message(b'G', b"\0\0\x01\0\0"),
    ];
    let end = vec![message(b'C', b"COPY 1\0"), message(b'Z', b"I")];
    postgres(
        "COPY FROM STDIN",
        vec![flushed(begin), synced(end)],
        b"COPY 1\0",
        talk(async |database: Database| {
            let copy = database.copy_in(statement("COPY t FROM STDIN"));
            copy.send(Bytes::from_static(b"1\n")).await?;
            copy.finish().await.map(drop)
        }),
    )
}

fn postgres_copy_out() -> Conversation {
    let begin = vec![
        message(b'1', b""),
        message(b'2', b""),
        message(b'H', b"\0\0\x01\0\0"),
    ];
    let data = vec![
        message(b'd', b"1\n"),
        message(b'd', b"2\n"),
        message(b'c', b""),
        message(b'C', b"COPY 2\0"),
        message(b'Z', b"I"),
    ];
    postgres(
        "COPY TO STDOUT",
        vec![flushed(begin), synced(data)],
        b"COPY 2\0",
        talk(async |database: Database| {
            let copy = database.copy_out(statement("COPY t TO STDOUT"));
            while copy.next().await?.is_some() {}
            Ok(())
        }),
    )
}

fn postgres_stream() -> Conversation {
    let row = || message(b'D', b"\0\x01\0\0\0\x011");
    let suspended = || message(b's', b"");
    let begin = vec![
        message(b'1', b""),
        message(b'2', b""),
        postgres_columns(),
        row(),
        suspended(),
    ];
    postgres(
        "a stream",
        vec![
            flushed(begin),
            flushed(vec![row(), suspended()]),
            flushed(vec![message(b'C', b"SELECT 2\0")]),
            synced(vec![message(b'Z', b"I")]),
        ],
        b"SELECT 2\0",
        talk(async |database: Database| {
            let rows = database.stream(statement("SELECT a FROM t"), 1);
            while rows.next().await?.is_some() {}
            Ok(())
        }),
    )
}

fn postgres_listen() -> Conversation {
    let subscribed = vec![
        message(b'C', b"LISTEN\0"),
        message(b'Z', b"I"),
        message(b'A', b"\0\0\0\x07jobs\0new\0"),
    ];
    postgres(
        "LISTEN",
        vec![step(subscribed)],
        b"LISTEN\0",
        talk(async |database: Database| {
            let channels = vec!["jobs".to_owned()];
            let mut listener = database.listen(channels, Duration::from_secs(60))?.await?;
            // A lost connection is made again for as long as it takes.
            let _ = tokio::time::timeout(Duration::from_millis(50), listener.wait()).await;
            listener.take();
            Ok(())
        }),
    )
}

// MySQL

const MYSQL: Protocol = Protocol {
    scheme: "mysql",
    greets: true,
    patch_length: |packet, length| {
        if let Some(place) = packet.get_mut(..3) {
            place.copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    },
    header: 4,
    kinds: b"\x00\x01\x02\x03\x04\x0a\x7f\xfa\xfb\xfc\xfd\xfe\xff",
    kind_at: 4,
};

/// Status flags: in a transaction, in no transaction with autocommit, and of a cursor that has rows or none left.
const OPEN: u8 = 0x01;
const AUTOCOMMIT: u8 = 0x02;
const HAS_CURSOR: u8 = 0x41;
const LAST_ROW_SENT: u8 = 0xc1;

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

fn ok(sequence: u8, status: u8) -> Vec<u8> {
    packet(sequence, &[0, 1, 0, status, 0, 0, 0])
}

fn end_of_rows(sequence: u8, status: u8) -> Vec<u8> {
    packet(sequence, &[0xfe, 0, 0, status, 0, 0, 0])
}

fn mysql_column(sequence: u8) -> Vec<u8> {
    let text = |text: &[u8]| [&[text.len() as u8], text].concat();
    let names = [&b"def"[..], b"", b"", b"", b"a", b"a"].map(text).concat();
    let rest = [12, 45, 0, 11, 0, 0, 0, 8, 0, 0, 0, 0, 0];
    packet(sequence, &[&names[..], &rest].concat())
}

/// A statement that is prepared, without parameters.
fn prepared(columns: u8) -> Vec<Vec<u8>> {
    let mut packets = vec![packet(1, &[0, 1, 0, 0, 0, columns, 0, 0, 0, 0, 0, 0])];
    packets.extend((columns > 0).then(|| mysql_column(2)));
    packets
}

fn mysql_rows(status: u8) -> Vec<Vec<u8>> {
    vec![
        packet(1, b"\x01"),
        mysql_column(2),
        packet(3, b"\0\0\x01\0\0\0\0\0\0\0"),
        end_of_rows(4, status),
    ]
}

fn mysql_log_in() -> Script {
    // The protocol of 4.1, databases, transactions, plugins, answers of any length, no EOF packets.
    let greeting = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0\x09\xa2\x2d\x02\0\x28\x01\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
    vec![
        step(vec![packet(0, greeting)]),
        step(vec![ok(2, AUTOCOMMIT)]),
        step(vec![
            ok(1, AUTOCOMMIT),
            packet(1, b"\x01"),
            mysql_column(2),
            packet(3, b"\x0816777216"),
            end_of_rows(4, AUTOCOMMIT),
        ]),
    ]
}

fn mysql(name: &'static str, steps: Vec<Step>, talk: Talk) -> Conversation {
    let log_in = mysql_log_in();
    Conversation {
        name,
        protocol: MYSQL,
        options: "&local_infile=on",
        first: log_in.len(),
        script: [log_in, steps].concat(),
        talk,
        proof: b"",
    }
}

fn mysql_select() -> Conversation {
    let log_in_too = mysql(
        "a prepared SELECT",
        vec![step(prepared(1)), step(mysql_rows(AUTOCOMMIT))],
        talk(async |database: Database| select(&database).await),
    );
    Conversation {
        first: 0,
        ..log_in_too
    }
}

fn mysql_transaction() -> Conversation {
    mysql(
        "a transaction",
        vec![
            // SET autocommit = 0 travels with the first statement.
            step([vec![ok(1, 0)], prepared(1)].concat()),
            step(mysql_rows(OPEN)),
            step(prepared(0)),
            step(vec![ok(1, OPEN)]),
            step(vec![ok(1, 0), ok(1, AUTOCOMMIT)]),
        ],
        talk(transfer),
    )
}

fn mysql_cursor() -> Conversation {
    let fetched = |status| {
        step(vec![
            packet(1, b"\0\0\x01\0\0\0\0\0\0\0"),
            end_of_rows(2, status),
        ])
    };
    mysql(
        "a cursor",
        vec![
            step([vec![ok(1, 0)], prepared(1)].concat()),
            step(vec![
                packet(1, b"\x01"),
                mysql_column(2),
                end_of_rows(3, HAS_CURSOR),
            ]),
            fetched(HAS_CURSOR),
            fetched(LAST_ROW_SENT),
            step(vec![ok(1, 0), ok(1, AUTOCOMMIT)]),
        ],
        talk(async |database: Database| {
            let transaction = database.transaction();
            let rows = transaction.stream(statement("SELECT a FROM t"), 1)?;
            while rows.next().await?.is_some() {}
            transaction.rollback().await
        }),
    )
}

fn mysql_local_infile() -> Conversation {
    const FILE: &str = "/proc/self/comm";
    let unpreparable =
        b"\xff\x0f\x05#HY000This command is not supported in the prepared statement protocol yet";
    mysql(
        "LOAD DATA LOCAL INFILE",
        vec![
            step(vec![packet(1, unpreparable)]),
            step(vec![packet(1, &[b"\xfb", FILE.as_bytes()].concat())]),
            Step {
                // An empty packet ends the file.
                is_due: |said| said.len() > 4 && matches!(said.last_chunk(), Some([0, 0, 0, _])),
                messages: vec![ok(4, AUTOCOMMIT)],
            },
        ],
        talk(async |database: Database| {
            let sql = format!("LOAD DATA LOCAL INFILE '{FILE}' INTO TABLE t");
            database.execute(statement(&sql)).await.map(drop)
        }),
    )
}

// Talks

async fn select(database: &Database) -> Result<(), Error> {
    database.execute(statement("SELECT 1")).await.map(drop)
}

async fn transfer(database: Database) -> Result<(), Error> {
    let transaction = database.transaction();
    transaction.push(statement("SELECT 1"))?;
    transaction.flush().await?;
    transaction.push(statement("INSERT INTO t VALUES (1)"))?;
    transaction.commit().await
}

/// Every way to break one message of the script, with its name.
fn broken(conversation: &Conversation) -> Vec<(String, Script)> {
    let (protocol, script) = (&conversation.protocol, &conversation.script);
    let mut scripts = Vec::new();
    for (number, answer) in script.iter().enumerate().skip(conversation.first) {
        let answer = &answer.messages;
        for at in 0..answer.len() {
            let mut add = |what: String, change: &dyn Fn(&mut Vec<Vec<u8>>)| {
                let mut script = script.clone();
                change(&mut script[number].messages);
                // Then it closes: a server that falls silent costs the time that the caller gives it.
                script.truncate(number + 1);
                scripts.push((format!("step {number}, message {at}: {what}"), script));
            };
            let length = answer[at].len() - protocol.header;
            for cut in 0..answer[at].len() {
                add(format!("cut to {cut} bytes"), &|answer| {
                    answer[at].truncate(cut);
                    answer.truncate(at + 1);
                });
            }
            for wrong in [-4, -1, 0, 1, 60_000, 0xff_ffff, 0x3fff_fff0, 0xffff_ffff] {
                add(format!("length {wrong}"), &|answer| {
                    (protocol.patch_length)(&mut answer[at], wrong);
                });
            }
            for more in [1, 300] {
                add(format!("{more} bytes longer"), &|answer| {
                    answer[at].extend(std::iter::repeat_n(0xab, more));
                    (protocol.patch_length)(&mut answer[at], (length + more) as i64);
                });
            }
            for kind in protocol.kinds {
                add(format!("replaced by {kind:#x}"), &|answer| {
                    if let Some(place) = answer[at].get_mut(protocol.kind_at) {
                        *place = *kind;
                    }
                });
            }
            add("left out".to_owned(), &|answer| drop(answer.remove(at)));
            add("said twice".to_owned(), &|answer| {
                answer.insert(at, answer[at].clone());
            });
            add("said first".to_owned(), &|answer| {
                let message = answer.remove(at);
                answer.insert(0, message);
            });
        }
    }
    scripts
}

/// Plays a script to the next client that connects, and a sound one to those after it, until each has heard all of it.
struct Server {
    port: u16,
    next: Arc<Mutex<Option<Script>>>,
    connected: Arc<AtomicUsize>,
}

impl Server {
    fn start(protocol: Protocol, sound: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self {
            port,
            next: Arc::default(),
            connected: Arc::default(),
        };
        let (next, connected) = (Arc::clone(&server.next), Arc::clone(&server.connected));
        std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                connected.fetch_add(1, Ordering::SeqCst);
                let script = next.lock().unwrap().take();
                let script = script.unwrap_or_else(|| sound.clone());
                std::thread::spawn(move || play(socket, protocol.greets, &script));
            }
        });
        server
    }

    fn dsn(&self, conversation: &Conversation) -> String {
        let (scheme, port, options) = (
            conversation.protocol.scheme,
            self.port,
            conversation.options,
        );
        format!(
            "{scheme}://app:secret@127.0.0.1:{port}/db?sslmode=disable&connect_timeout=60{options}"
        )
    }
}

fn play(mut socket: TcpStream, greets: bool, script: &[Step]) {
    let limit = Some(Duration::from_secs(20));
    socket.set_read_timeout(limit).unwrap();
    for (number, step) in script.iter().enumerate() {
        let mut said = Vec::new();
        while !(greets && number == 0 || (step.is_due)(&said)) {
            let mut buffer = [0; 16 * 1024];
            match socket.read(&mut buffer) {
                Ok(count @ 1..) => said.extend_from_slice(&buffer[..count]),
                _ => return,
            }
        }
        if socket.write_all(&step.messages.concat()).is_err() {
            return;
        }
    }
}

async fn open(dsn: &str) -> Database {
    let pool = PoolOptions {
        size: 1,
        return_timeout: Duration::from_secs(1),
        ..PoolOptions::default()
    };
    Database::open(dsn, pool, Hooks::default())
        .unwrap()
        .await
        .unwrap()
}

/// # Errors
/// The client's mistake.
async fn survives(
    conversation: &Conversation,
    server: &Server,
    script: Script,
) -> Result<(), String> {
    let said: Vec<u8> = script
        .iter()
        .flat_map(|step| step.messages.concat())
        .collect();
    server.next.lock().unwrap().replace(script);
    let before = server.connected.load(Ordering::SeqCst);
    let memory = PeakMemory::begin();

    let database = open(&server.dsn(conversation)).await;
    let outcome = (conversation.talk)(database.clone()).await;
    let address = format!("127.0.0.1:{}", server.port);
    match &outcome {
        Ok(()) => {
            let proof = conversation.proof;
            let is_proven = proof.is_empty() || said.windows(proof.len()).any(|at| at == proof);
            ensure(is_proven, || "it succeeded without an answer".to_owned())?;
        }
        Err(
            error @ (Error::ConnectionLost { .. }
            | Error::Connect { .. }
            | Error::OutcomeUnknown { .. }),
        ) => {
            let text = error.to_string();
            ensure(text.contains(&address), || format!("no address: {text}"))?;
            ensure(!text.contains("secret"), || format!("the password: {text}"))?;
            let names_state = text.contains("while the client")
                || text.contains("it did not")
                // The server's own reason to end the session.
                || text.contains("SQLSTATE")
                || text.contains("(error ")
                || matches!(error, Error::Connect { .. });
            ensure(names_state, || format!("not what was awaited: {text}"))?;
        }
        Err(_) => {}
    }
    let is_lost = matches!(
        outcome,
        Err(Error::ConnectionLost { .. } | Error::OutcomeUnknown { .. })
    );
    // After a log-in that failed, borrowers are refused until the next attempt is due.
    let next = async { while select(&database).await.is_err() {} };
    let next = tokio::time::timeout(Duration::from_secs(60), next).await;
    ensure(next.is_ok(), || "the next borrower gets nothing".to_owned())?;
    if is_lost {
        let connected = server.connected.load(Ordering::SeqCst) - before;
        ensure(connected > 1, || {
            "a broken connection was lent again".to_owned()
        })?;
    }
    let stats = database.stats().unwrap();
    ensure(stats.waiting == 0, || format!("{} wait", stats.waiting))?;
    database.close().await.unwrap();
    let most = memory.bytes();
    ensure(most < MEMORY, || format!("it took {most} bytes"))
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    holds.then_some(()).ok_or_else(problem)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let within = async { tokio::time::timeout(DEADLINE, test).await };
    LocalSet::new()
        .block_on(&runtime, within)
        .expect("it does not end");
}

fn nothing_does_harm(conversations: &[Conversation]) {
    for conversation in conversations {
        let sound = match conversation.protocol.scheme {
            "postgres" if conversation.options.contains("statement_cache=0") => {
                vec![
                    postgres_log_in(),
                    synced([postgres_answer(1, b"SELECT 1\0"), vec![message(b'Z', b"I")]].concat()),
                ]
            }
            "postgres" => postgres_select().script,
            _ => mysql_select().script,
        };
        let server = Server::start(conversation.protocol, sound);
        run(async {
            let whole = conversation.script.clone();
            server.next.lock().unwrap().replace(whole);
            let database = open(&server.dsn(conversation)).await;
            let outcome = (conversation.talk)(database.clone()).await;
            assert!(outcome.is_ok(), "{}: {outcome:?}", conversation.name);
            database.close().await.unwrap();
            let mut problems = Vec::new();
            for (what, script) in broken(conversation) {
                if let Err(problem) = survives(conversation, &server, script).await {
                    problems.push(format!("{}, {what}: {problem}", conversation.name));
                }
            }
            assert!(problems.is_empty(), "{}", problems.join("\n"));
        });
    }
}

/// One after the other: each measures the memory of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn nothing_that_a_postgres_server_says_does_harm() {
    let _turn = ONE_AT_A_TIME.lock();
    nothing_does_harm(&[
        postgres_select(),
        postgres_shared_round_trip(),
        postgres_transaction(),
        postgres_copy_in(),
        postgres_copy_out(),
        postgres_stream(),
        postgres_listen(),
    ]);
}

#[test]
fn nothing_that_a_mysql_server_says_does_harm() {
    let _turn = ONE_AT_A_TIME.lock();
    nothing_does_harm(&[
        mysql_select(),
        mysql_transaction(),
        mysql_cursor(),
        mysql_local_infile(),
    ]);
}
