package server

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/broker"
	"github.com/burano/burano/web/client"
	"github.com/burano/burano/web/gate"
)

// brokerPatience is how long requests that are under way may take when the broker is to stop.
const brokerPatience = 10 * time.Second

// brokerConnections are the connections of marketplaces, which are few.
const brokerConnections = 1024

// BrokerCommand is burano broker.
func BrokerCommand(connection *cli.Connection) *cobra.Command {
	var listen, cert, key string
	command := &cobra.Command{
		Use:   "broker",
		Short: "Offer the catalog to platforms by the Open Service Broker API",
		Long: `Broker answers the Open Service Broker API 2.16 below /v2, as Murano's broker for Cloud Foundry did: platforms list the applications of the
catalog as services, and make, change, bind and delete instances of them. It is a client of Burano's server and stores nothing.

Keystone, project and the users' domain come from clouds.yaml (OS_CLOUD or --os-cloud) or the OS_* variables. A caller sends
a user and a password of that domain (HTTP basic authentication), and acts with that user's roles in the project. Each instance is an environment
there, named service-<id of the instance>. An application that can be bound has an action getCredentials.

Passwords go over the network: use --tls-cert and --tls-key where that is not loopback.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
			if _, err := client.OwnCredentials(connection.Cloud); err != nil {
				return err
			}
			encryption, err := encryptionOf(cert, key, logger)
			if err != nil {
				return err
			}
			l := &listeners{patience: brokerPatience, log: logger}
			if err := l.add("listen", listen, broker.New(broker.Config{SignIn: signInAs(connection), Logger: logger}), encryption, gate.NewConnections(brokerConnections)); err != nil {
				return err
			}
			logger.Info("the broker answers", "address", l.listen[0].Addr().String(), "tls", cert != "")
			return l.serve(command.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil })
		},
	}
	command.Flags().StringVar(&listen, "listen", "127.0.0.1:8083", "address and port")
	command.Flags().StringVar(&cert, "tls-cert", "", "PEM file of the certificate")
	command.Flags().StringVar(&key, "tls-key", "", "PEM file of its key")
	command.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return command
}

// signInAs signs other users in to the same project.
func signInAs(c *cli.Connection) func(ctx context.Context, user, password string) (*client.Client, error) {
	return func(ctx context.Context, user, password string) (*client.Client, error) {
		own, err := client.OwnCredentials(c.Cloud)
		if err != nil {
			return nil, err
		}
		auth := own.Auth
		as := gophercloud.AuthOptions{
			IdentityEndpoint: auth.IdentityEndpoint, Username: user, Password: password, DomainID: auth.DomainID, DomainName: auth.DomainName,
			TenantID: auth.TenantID, TenantName: auth.TenantName, Scope: auth.Scope, AllowReauth: true,
		}
		provider, err := config.NewProviderClient(ctx, as, config.WithTLSConfig(own.TLS))
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			return nil, broker.ErrRefused
		}
		if err != nil {
			return nil, err
		}
		return own.Of(provider, c.URL)
	}
}
