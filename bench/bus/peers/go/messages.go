package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	storeCustomer  = "StoreCustomer"
	customerStored = "CustomerStored"
)

// StoreCustomer is the command: put one customer into the table.
type StoreCustomer struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// CustomerStored is the event: the customer with this id is in the table.
type CustomerStored struct {
	ID string `json:"id"`
}

// fill declares the queue and publishes every command before anything is consumed. It returns when the last one was written
// to the socket.
func fill(ctx context.Context, connection *amqp.Connection, settings settings) error {
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	defer channel.Close()

	if _, err := channel.QueueDeclare(settings.queue, true, false, false, false, nil); err != nil {
		return err
	}
	for i := range settings.commands {
		command := StoreCustomer{ID: uuid.NewString(), Name: fmt.Sprintf("name_%d", i), Email: "name@qwerty.root"}
		if err := publish(ctx, channel, settings, storeCustomer, command); err != nil {
			return err
		}
	}
	return nil
}

func publish(ctx context.Context, channel *amqp.Channel, settings settings, messageType string, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return channel.PublishWithContext(ctx, "", settings.queue, false, false, amqp.Publishing{
		ContentType:  "application/json",
		DeliveryMode: settings.deliveryMode,
		Type:         messageType,
		Body:         body,
	})
}
