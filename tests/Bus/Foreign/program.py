"""A producer and a consumer of RabbitMQ for ForeignProgramsTest, with pika: CloudEvents over a fanout exchange.

usage: program.py declare|produce|consume
"""

import json
import os
import sys

import pika

EXCHANGE = "ledger"
ENTRIES = "ledger.entries"
INVOICES = "ledger.invoices"


def declare(channel):
    channel.exchange_declare(EXCHANGE, "direct", durable=True)
    for queue, key in ((ENTRIES, "entry"), (INVOICES, "invoice")):
        channel.queue_declare(queue, durable=True)
        channel.queue_bind(queue, EXCHANGE, key)


def produce(channel):
    """One event in each mode of the AMQP binding."""
    attributes = {"specversion": "1.0", "id": "17", "source": "/ledger", "type": "ledger.entry.booked"}
    data = {"account": "4711", "cents": -250}
    channel.basic_publish(
        EXCHANGE,
        "entry",
        json.dumps(data),
        pika.BasicProperties(
            content_type="application/json",
            headers={f"cloudEvents:{name}": value for name, value in attributes.items()},
        ),
    )
    channel.basic_publish(
        EXCHANGE,
        "entry",
        json.dumps({**attributes, "id": "18", "datacontenttype": "application/json", "data": data}),
        pika.BasicProperties(content_type="application/cloudevents+json; charset=utf-8"),
    )


def consume(channel):
    """Writes the next invoice with what the protocol says of it as one line of JSON."""
    for method, properties, body in channel.consume(INVOICES, inactivity_timeout=60):
        if method is None:
            sys.exit("no invoice arrived within 60 seconds")
        channel.basic_ack(method.delivery_tag)
        channel.cancel()
        print(
            json.dumps(
                {
                    "exchange": method.exchange,
                    "key": method.routing_key,
                    "type": properties.type,
                    "contentType": properties.content_type,
                    "headers": properties.headers,
                    "body": body.decode(),
                }
            )
        )
        return


with pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"])) as connection:
    {"declare": declare, "produce": produce, "consume": consume}[sys.argv[1]](connection.channel())
