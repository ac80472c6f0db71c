//! Messages per second and CPU seconds of this process against the broker at `AMQP_URL`.
//!
//! `cargo run --release --example amqp_throughput [messages]`: publishes transient messages of 100 bytes, then again with
//! confirms, then takes each, publishes another and acknowledges it, then takes and acknowledges those.
//! 100 deliveries are in flight at most.

use std::error::Error;
use std::time::{Duration, Instant};

use weft_core::amqp::{
    Config, Connection, ConsumeOptions, Consumer, Message, Properties, Publisher, PublisherOptions,
    Queue, Topology,
};

const QUEUE: &str = "weft.throughput";
const PREFETCH: u16 = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("AMQP_URL").map_err(|_| "AMQP_URL names no broker")?;
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(100_000), |text| text.parse())?;
    let publishing = Connection::connect(Config::parse(&url)?).await?;
    let consuming = Connection::connect(Config::parse(&url)?).await?;
    let queues = vec![Queue::new(QUEUE)];
    let topology = Topology {
        queues,
        ..Topology::default()
    };
    publishing.declare(topology).await?;
    publishing.purge_queue(QUEUE).await?;

    let plain = PublisherOptions {
        confirm: false,
        window: 0,
    };
    let plain = publishing.publisher(plain).await?;
    let measure = Measure::start("publish");
    fill(&plain, count).await?;
    measure.print(count);
    publishing.purge_queue(QUEUE).await?;

    let confirming = publishing.publisher(PublisherOptions::default()).await?;
    let measure = Measure::start("publish, confirmed");
    fill(&confirming, count).await?;
    measure.print(count);

    let options = ConsumeOptions {
        prefetch: PREFETCH,
        ..ConsumeOptions::default()
    };
    let consumer = consuming.consume(QUEUE, options).await?;
    let measure = Measure::start("consume, publish, ack");
    drain(&consumer, count, Some(&plain)).await?;
    measure.print(count);
    let measure = Measure::start("consume, ack");
    drain(&consumer, count, None).await?;
    measure.print(count);

    consumer.close().await?;
    println!(
        "left in the queue: {}",
        publishing.delete_queue(QUEUE).await?
    );
    publishing.close().await;
    consuming.close().await;
    Ok(())
}

async fn fill(publisher: &Publisher, count: usize) -> Result<(), Box<dyn Error>> {
    let properties = Properties {
        content_type: Some("application/json".into()),
        delivery_mode: Some(1),
        ..Properties::default()
    };
    let body = [b'x'; 100];
    for _ in 0..count {
        drop(publisher.publish(&message(&properties, &body)).await?);
    }
    publisher.flush().await?;
    Ok(())
}

async fn drain(
    consumer: &Consumer,
    count: usize,
    publisher: Option<&Publisher>,
) -> Result<(), Box<dyn Error>> {
    let properties = Properties::default();
    let mut left = count;
    while left > 0 {
        for delivery in consumer.next_batch(left.min(100)).await? {
            if let Some(publisher) = publisher {
                drop(
                    publisher
                        .publish(&message(&properties, delivery.body()))
                        .await?,
                );
            }
            consumer.ack(delivery.tag());
            left -= 1;
        }
    }
    consumer.flush().await?;
    Ok(())
}

fn message<'a>(properties: &'a Properties<'a>, body: &'a [u8]) -> Message<'a> {
    Message {
        exchange: "",
        routing_key: QUEUE,
        properties,
        body,
        mandatory: false,
    }
}

struct Measure {
    what: &'static str,
    wall: Instant,
    cpu: Duration,
}

impl Measure {
    fn start(what: &'static str) -> Self {
        Self {
            what,
            wall: Instant::now(),
            cpu: cpu_time(),
        }
    }

    fn print(self, count: usize) {
        let wall = self.wall.elapsed().as_secs_f64();
        let cpu = (cpu_time() - self.cpu).as_secs_f64();
        let per_message = cpu / count as f64 * 1e6;
        let rate = count as f64 / wall;
        println!(
            "{:22} {rate:>9.0}/s  {cpu:.2} s CPU  {per_message:.2} µs each",
            self.what
        );
    }
}

/// User and system time of all threads so far, from `/proc/self/schedstat` of each; zero where there is none.
fn cpu_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}
