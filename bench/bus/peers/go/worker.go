package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"
)

const (
	consumers = 100
	prefetch  = 100
)

// phase counts one kind of message and remembers when the last one of it was acknowledged.
type phase struct {
	count    atomic.Int64
	finished time.Time
}

// done reports whether this was the last of total messages. Only the goroutine that is told so writes finished.
func (phase *phase) done(total int) bool {
	if phase.count.Add(1) != int64(total) {
		return false
	}
	phase.finished = time.Now()
	return true
}

// worker drains the queue with 100 consumers, each on a channel of its own.
type worker struct {
	connection *amqp.Connection
	pool       *pgxpool.Pool
	settings   settings
	commands   phase
	events     phase
	// Events that were acknowledged while other consumers still had commands to handle.
	eventsOverlapped int64
	drained          chan struct{}
}

func newWorker(connection *amqp.Connection, pool *pgxpool.Pool, settings settings) *worker {
	return &worker{connection: connection, pool: pool, settings: settings, drained: make(chan struct{})}
}

// drain returns when every event was acknowledged, or with the first error of any consumer.
func (worker *worker) drain(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range consumers {
		channel, deliveries, err := worker.subscribe()
		if err != nil {
			return err
		}
		group.Go(func() error {
			defer channel.Close()
			return worker.consume(ctx, channel, deliveries)
		})
	}
	return group.Wait()
}

func (worker *worker) subscribe() (*amqp.Channel, <-chan amqp.Delivery, error) {
	channel, err := openChannel(worker.connection, worker.settings)
	if err != nil {
		return nil, nil, err
	}
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	deliveries, err := channel.Consume(worker.settings.queue, "", false, false, false, false, nil)
	return channel, deliveries, err
}

func (worker *worker) consume(ctx context.Context, channel *amqp.Channel, deliveries <-chan amqp.Delivery) error {
	for {
		select {
		case <-worker.drained:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case delivery, open := <-deliveries:
			if !open {
				return fmt.Errorf("the broker closed a channel with messages outstanding")
			}
			if err := worker.handle(ctx, channel, delivery); err != nil {
				return fmt.Errorf("%s: %w", delivery.Type, err)
			}
		}
	}
}

func (worker *worker) handle(ctx context.Context, channel *amqp.Channel, delivery amqp.Delivery) error {
	switch delivery.Type {
	case storeCustomer:
		return worker.handleCommand(ctx, channel, delivery)
	case customerStored:
		return worker.handleEvent(delivery)
	default:
		return fmt.Errorf("unknown message type %q", delivery.Type)
	}
}

func (worker *worker) handleCommand(ctx context.Context, channel *amqp.Channel, delivery amqp.Delivery) error {
	var command StoreCustomer
	if err := json.Unmarshal(delivery.Body, &command); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, worker.pool, func(tx pgx.Tx) error {
		if err := insert(ctx, tx, command); err != nil {
			return err
		}
		confirmation, err := publish(ctx, channel, worker.settings, customerStored, CustomerStored{ID: command.ID})
		if err != nil {
			return err
		}
		return await(ctx, confirmation)
	})
	if err != nil {
		return err
	}
	if err := delivery.Ack(false); err != nil {
		return err
	}
	if worker.commands.done(worker.settings.commands) {
		worker.eventsOverlapped = worker.events.count.Load()
	}
	return nil
}

func (worker *worker) handleEvent(delivery amqp.Delivery) error {
	var event CustomerStored
	if err := json.Unmarshal(delivery.Body, &event); err != nil {
		return err
	}
	if err := delivery.Ack(false); err != nil {
		return err
	}
	if worker.events.done(worker.settings.commands) {
		close(worker.drained)
	}
	return nil
}
