// Command customers is the Go contender of bench/bus: one process that fills a RabbitMQ queue with StoreCustomer commands,
// stores each in a PostgreSQL transaction, publishes a CustomerStored event to the same queue and drains the events.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type settings struct {
	amqpURL      string
	databaseURL  string
	queue        string
	commands     int
	deliveryMode uint8
	// confirms makes whoever publishes wait until the broker has taken the message.
	confirms bool
}

type report struct {
	FillSeconds      float64 `json:"fill_seconds"`
	CommandsSeconds  float64 `json:"commands_seconds"`
	EventsSeconds    float64 `json:"events_seconds"`
	Commands         int64   `json:"commands"`
	Events           int64   `json:"events"`
	EventsOverlapped int64   `json:"events_overlapped"`
}

func main() {
	log.SetFlags(0)
	settings, err := settingsFromEnvironment()
	if err != nil {
		log.Fatal(err)
	}
	report, err := run(context.Background(), settings)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		log.Fatal(err)
	}
}

func settingsFromEnvironment() (settings, error) {
	commands, err := strconv.Atoi(os.Getenv("COMMANDS"))
	if err != nil || commands < 1 {
		return settings{}, fmt.Errorf("COMMANDS must be a positive number, got %q", os.Getenv("COMMANDS"))
	}
	deliveryMode := amqp.Transient
	if os.Getenv("PERSISTENT") == "1" {
		deliveryMode = amqp.Persistent
	}
	return settings{
		amqpURL:      os.Getenv("AMQP_URL"),
		databaseURL:  os.Getenv("DATABASE_URL"),
		queue:        os.Getenv("BENCH_QUEUE"),
		commands:     commands,
		deliveryMode: deliveryMode,
		confirms:     os.Getenv("MODE") == "confirmed",
	}, nil
}

func run(ctx context.Context, settings settings) (report, error) {
	connection, err := amqp.Dial(settings.amqpURL)
	if err != nil {
		return report{}, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	defer connection.Close()

	pool, err := connectDatabase(ctx, settings.databaseURL)
	if err != nil {
		return report{}, err
	}
	defer pool.Close()

	started := time.Now()
	if err := fill(ctx, connection, settings); err != nil {
		return report{}, fmt.Errorf("fill %s: %w", settings.queue, err)
	}
	filled := time.Now()

	worker := newWorker(connection, pool, settings)
	if err := worker.drain(ctx); err != nil {
		return report{}, fmt.Errorf("consume %s: %w", settings.queue, err)
	}
	return report{
		FillSeconds:      filled.Sub(started).Seconds(),
		CommandsSeconds:  worker.commands.finished.Sub(filled).Seconds(),
		EventsSeconds:    worker.events.finished.Sub(worker.commands.finished).Seconds(),
		Commands:         worker.commands.count.Load(),
		Events:           worker.events.count.Load(),
		EventsOverlapped: worker.eventsOverlapped,
	}, nil
}
