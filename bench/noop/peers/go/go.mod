module weft/bench/noop/peers/go

go 1.25.0

require github.com/rabbitmq/amqp091-go v1.16.0
