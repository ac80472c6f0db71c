// A producer and a consumer of RabbitMQ for ForeignProgramsTest: declares its own topology, as a Go team would.
//
// usage: program produce|consume|declare
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	exchange = "warehouse"
	orders   = "warehouse.orders"
	parcels  = "warehouse.parcels"
)

// orderPlaced is what the program sends: plain JSON, named by a header.
type orderPlaced struct {
	ID    string  `json:"id"`
	Total float64 `json:"total"`
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(command string) error {
	connection, err := amqp.Dial(os.Getenv("AMQP_URL"))
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	switch command {
	case "declare":
		return declare(channel)
	case "produce":
		return produce(channel)
	default:
		return consume(channel)
	}
}

func declare(channel *amqp.Channel) error {
	if err := channel.ExchangeDeclare(exchange, "topic", true, false, false, false, nil); err != nil {
		return err
	}
	for queue, key := range map[string]string{orders: "order.*", parcels: "parcel.#"} {
		if _, err := channel.QueueDeclare(queue, true, false, false, false, nil); err != nil {
			return err
		}
		if err := channel.QueueBind(queue, key, exchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}

func produce(channel *amqp.Channel) error {
	body, err := json.Marshal(orderPlaced{ID: "go-1", Total: 12.5})
	if err != nil {
		return err
	}
	return channel.PublishWithContext(context.Background(), exchange, "order.placed", true, false, amqp.Publishing{
		ContentType: "application/json",
		MessageId:   "go-message-1",
		AppId:       "warehouse",
		Headers:     amqp.Table{"event_name": "order_placed", "x-request": "r-7", "attempt": int32(3)},
		Body:        body,
	})
}

// consume writes the next parcel with what the protocol says of it as one line of JSON.
func consume(channel *amqp.Channel) error {
	deliveries, err := channel.Consume(parcels, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	select {
	case delivery := <-deliveries:
		if err := delivery.Ack(false); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"exchange": delivery.Exchange, "key": delivery.RoutingKey, "type": delivery.Type, "contentType": delivery.ContentType,
			"headers": delivery.Headers, "body": string(delivery.Body),
		})
	case <-time.After(60 * time.Second):
		return fmt.Errorf("no parcel arrived within 60 seconds")
	}
}
