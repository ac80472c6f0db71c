use weft_core::amqp::{Config, Connection, ConsumeOptions, Message, Properties, PublisherOptions};

use crate::{BODY, Load, Outcome, timed, variable};

async fn connect() -> Outcome<Connection> {
    Ok(Connection::connect(Config::parse(&variable("AMQP_URL")?)?).await?)
}

pub async fn publish(load: &Load) -> Outcome {
    let connection = connect().await?;
    let options = PublisherOptions {
        confirm: true,
        window: load.window,
    };
    let publisher = connection.publisher(options).await?;
    let queue = variable("QUEUE")?;
    let properties = Properties {
        delivery_mode: Some(2),
        ..Properties::default()
    };
    let message = Message {
        exchange: "",
        routing_key: &queue,
        properties: &properties,
        body: &BODY,
        mandatory: true,
    };
    timed(async {
        for _ in 0..load.operations {
            drop(publisher.publish(&message).await?);
        }
        Ok(publisher.wait_for_confirms().await?)
    })
    .await?;
    connection.close().await;
    Ok(())
}

pub async fn consume(load: &Load) -> Outcome {
    let connection = connect().await?;
    let options = ConsumeOptions {
        prefetch: load.window.try_into()?,
        ..ConsumeOptions::default()
    };
    let consumer = connection.consume(&variable("QUEUE")?, options).await?;
    timed(async {
        let mut seen = 0;
        while seen < load.operations {
            for delivery in consumer.next_batch(load.window).await? {
                assert_eq!(delivery.body(), BODY);
                consumer.ack(delivery.tag());
                seen += 1;
            }
        }
        Ok(consumer.flush().await?)
    })
    .await?;
    connection.close().await;
    Ok(())
}
