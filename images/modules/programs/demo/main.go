// Command demo is the web application of the demonstration: it names the replica that answers, and it ends without failing a request.
package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	if err := run(log); err != nil {
		log.Error("stopped", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()

	name := os.Getenv("POD_NAME")
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return err
		}
	}
	address := os.Getenv("LISTEN")
	if address == "" {
		address = ":8080"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	// Kubernetes kills after 30 seconds; half a second of silence can be a lull, three cannot.
	application := application{name: name, log: log, quiet: 3 * time.Second, grace: 25 * time.Second}
	log.Info("serving", "address", listener.Addr().String(), "name", name)
	return application.serve(ctx, listener)
}
