package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	insertCustomer      = "insert_customer"
	insertCustomerSQL   = "INSERT INTO customers (id, name, email) VALUES ($1, $2, $3)"
	databaseConnections = consumers
)

// connectDatabase opens a pool whose connections all have the insert prepared.
func connectDatabase(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read DATABASE_URL: %w", err)
	}
	config.MaxConns = databaseConnections
	config.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Prepare(ctx, insertCustomer, insertCustomerSQL)
		return err
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func insert(ctx context.Context, tx pgx.Tx, command StoreCustomer) error {
	_, err := tx.Exec(ctx, insertCustomer, command.ID, command.Name, command.Email)
	return err
}
