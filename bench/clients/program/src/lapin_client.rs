use std::collections::VecDeque;

use futures_util::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions,
};
use lapin::types::FieldTable;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, PublisherConfirm,
};

use crate::{BODY, Load, Outcome, timed, variable};

async fn channel() -> Outcome<(Connection, Channel)> {
    let connection =
        Connection::connect(&variable("AMQP_URL")?, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    Ok((connection, channel))
}

pub async fn publish(load: &Load) -> Outcome {
    let (connection, channel) = channel().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    let queue = variable("QUEUE")?;
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let properties = BasicProperties::default().with_delivery_mode(2);
    timed(async {
        let mut unconfirmed = VecDeque::with_capacity(load.window);
        for _ in 0..load.operations {
            if unconfirmed.len() == load.window {
                confirmed(unconfirmed.pop_front().into_iter()).await?;
            }
            let confirm = channel
                .basic_publish(
                    "".into(),
                    queue.as_str().into(),
                    options,
                    &BODY,
                    properties.clone(),
                )
                .await?;
            unconfirmed.push_back(confirm);
        }
        confirmed(unconfirmed.into_iter()).await
    })
    .await?;
    connection.close(200, "".into()).await?;
    Ok(())
}

async fn confirmed(confirms: impl Iterator<Item = PublisherConfirm>) -> Outcome {
    for confirm in confirms {
        match confirm.await? {
            Confirmation::Ack(None) => (),
            other => return Err(format!("not confirmed: {other:?}").into()),
        }
    }
    Ok(())
}

pub async fn consume(load: &Load) -> Outcome {
    let (connection, channel) = channel().await?;
    channel
        .basic_qos(load.window.try_into()?, BasicQosOptions::default())
        .await?;
    let queue = variable("QUEUE")?;
    let mut consumer = channel
        .basic_consume(
            queue.as_str().into(),
            "clients".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await?;
    timed(async {
        for _ in 0..load.operations {
            let delivery = consumer
                .next()
                .await
                .ok_or("the broker has cancelled the consumer")??;
            assert_eq!(delivery.data, BODY);
            delivery.ack(BasicAckOptions::default()).await?;
        }
        Ok(())
    })
    .await?;
    connection.close(200, "".into()).await?;
    Ok(())
}
