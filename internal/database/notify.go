package database

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/wait"
)

// listenAgain is the policy for reconnecting.
var listenAgain = wait.Policy{First: 100 * time.Millisecond, Most: 10 * time.Second, Jitter: 0.5}

// Listen calls heard with the messages of others to the channel by pg_notify, over a connection of its own, until ctx ends. Messages during a reconnection
// are lost. SQLite has one server, so there it does nothing.
func Listen(ctx context.Context, db *gorm.DB, channel string, heard func(payload string)) error {
	if db.Name() != Postgres {
		return nil
	}
	config, err := postgresConfig(ctx, db)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		// A connection that was there begins with a short pause again.
		_ = listenAgain.Until(ctx, func(ctx context.Context) error {
			connected, err := listen(ctx, config, channel, heard)
			if connected {
				return nil
			}
			return wait.Again(err)
		})
	}
	return nil
}

func listen(ctx context.Context, config *pgx.ConnConfig, channel string, heard func(string)) (connected bool, err error) {
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, connection.Close(closing))
	}()
	if _, err := connection.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return false, err
	}
	for {
		notification, err := connection.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		heard(notification.Payload)
	}
}

// postgresConfig is how the handle's connections are made; a copy.
func postgresConfig(ctx context.Context, db *gorm.DB) (*pgx.ConnConfig, error) {
	handle, err := db.DB()
	if err != nil {
		return nil, err
	}
	connection, err := handle.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var config *pgx.ConnConfig
	err = connection.Raw(func(driver any) error {
		config = driver.(wholeAnswers).Conn.Conn().Config()
		config.OnNotification = nil // it is this connection's own
		return nil
	})
	return config, errors.Join(err, connection.Close())
}
