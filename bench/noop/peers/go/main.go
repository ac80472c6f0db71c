// Command noop is the Go contender of bench/noop: it publishes messages of 100 bytes with a window of unconfirmed ones, or takes
// and acknowledges them one by one.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	log.SetFlags(0)
	seconds, err := run(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]float64{"seconds": seconds}); err != nil {
		log.Fatal(err)
	}
}

func run(action string) (float64, error) {
	connection, err := amqp.Dial(os.Getenv("AMQP_URL"))
	if err != nil {
		return 0, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return 0, fmt.Errorf("open a channel: %w", err)
	}
	numbers := map[string]int{"MESSAGES": 0, "WINDOW": 0, "BYTES": 0}
	for name := range numbers {
		number, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		numbers[name] = number
	}
	queue := os.Getenv("BENCH_QUEUE")
	if action == "publish" {
		return publish(channel, queue, numbers["MESSAGES"], numbers["WINDOW"], numbers["BYTES"])
	}
	return consume(channel, queue, numbers["MESSAGES"], numbers["WINDOW"])
}

func publish(channel *amqp.Channel, queue string, total, window, size int) (float64, error) {
	if err := channel.Confirm(false); err != nil {
		return 0, fmt.Errorf("confirm mode: %w", err)
	}
	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, window))
	body := bytes.Repeat([]byte("x"), size)
	started := time.Now()
	unconfirmed := 0
	for sent := 0; sent < total; sent++ {
		if unconfirmed == window {
			if confirmation := <-confirms; !confirmation.Ack {
				return 0, fmt.Errorf("message %d was refused", confirmation.DeliveryTag)
			}
			unconfirmed--
		}
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
		if err := channel.PublishWithContext(context.Background(), "", queue, false, false, message); err != nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
		unconfirmed++
	}
	for ; unconfirmed > 0; unconfirmed-- {
		if confirmation := <-confirms; !confirmation.Ack {
			return 0, fmt.Errorf("message %d was refused", confirmation.DeliveryTag)
		}
	}
	return time.Since(started).Seconds(), nil
}

func consume(channel *amqp.Channel, queue string, total, prefetch int) (float64, error) {
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return 0, fmt.Errorf("prefetch: %w", err)
	}
	started := time.Now()
	deliveries, err := channel.Consume(queue, "noop", false, false, false, false, nil)
	if err != nil {
		return 0, fmt.Errorf("consume: %w", err)
	}
	for taken := 0; taken < total; taken++ {
		delivery, open := <-deliveries
		if !open {
			return 0, fmt.Errorf("the channel closed after %d messages", taken)
		}
		if err := delivery.Ack(false); err != nil {
			return 0, fmt.Errorf("acknowledge: %w", err)
		}
	}
	// Answered after the acknowledgements before it.
	if err := channel.Cancel("noop", false); err != nil {
		return 0, fmt.Errorf("cancel: %w", err)
	}
	return time.Since(started).Seconds(), nil
}
