module weft/tests/bus/foreign

go 1.21

require github.com/rabbitmq/amqp091-go v1.16.0
