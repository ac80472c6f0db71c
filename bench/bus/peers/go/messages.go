package main

import (
	"context"
	"encoding/json"
	"errors"
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
// to the socket or, with confirms, when the broker has confirmed them all.
func fill(ctx context.Context, connection *amqp.Connection, settings settings) error {
	channel, err := openChannel(connection, settings)
	if err != nil {
		return err
	}
	defer channel.Close()

	confirmations := make([]*amqp.DeferredConfirmation, 0, settings.commands)
	if _, err := channel.QueueDeclare(settings.queue, true, false, false, false, nil); err != nil {
		return err
	}
	for i := range settings.commands {
		command := StoreCustomer{ID: uuid.NewString(), Name: fmt.Sprintf("name_%d", i), Email: "name@qwerty.root"}
		confirmation, err := publish(ctx, channel, settings, storeCustomer, command)
		if err != nil {
			return err
		}
		confirmations = append(confirmations, confirmation)
	}
	for _, confirmation := range confirmations {
		if err := await(ctx, confirmation); err != nil {
			return err
		}
	}
	return nil
}

// openChannel opens a channel, in confirm mode when the settings ask for it.
func openChannel(connection *amqp.Connection, settings settings) (*amqp.Channel, error) {
	channel, err := connection.Channel()
	if err == nil && settings.confirms {
		err = channel.Confirm(false)
	}
	return channel, err
}

// await returns when the broker has confirmed a message, at once when the channel is not in confirm mode.
func await(ctx context.Context, confirmation *amqp.DeferredConfirmation) error {
	if confirmation == nil {
		return nil
	}
	acked, err := confirmation.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("the broker refused a message")
	}
	return err
}

func publish(ctx context.Context, channel *amqp.Channel, settings settings, messageType string, message any) (*amqp.DeferredConfirmation, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return channel.PublishWithDeferredConfirmWithContext(ctx, "", settings.queue, false, false, amqp.Publishing{
		ContentType:  "application/json",
		DeliveryMode: settings.deliveryMode,
		Type:         messageType,
		Body:         body,
	})
}
