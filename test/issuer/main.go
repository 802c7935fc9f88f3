// Command issuer is the issuer of OpenID Connect of the end-to-end tests: the provider of github.com/zitadel/oidc, with users that get signed tokens by their
// names and secrets (OAuth's client credentials). It is a module of its own, so that the product has none of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// user is a user of the issuer.
type user struct {
	secret string
	groups []string
}

// users is the provider's storage with these users. The audience of their tokens is fixed.
type users struct {
	*storage.Storage
	named    map[string]user
	audience string
}

// client is a user as the provider's client, whose access tokens are JWTs.
type client struct {
	op.Client
	name string
}

func (c client) GetID() string { return c.name }

func (c client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

func (u *users) ClientCredentials(ctx context.Context, name, secret string) (op.Client, error) {
	known, there := u.named[name]
	if !there || known.secret != secret {
		return nil, errors.New("wrong name or secret")
	}
	base, err := u.Storage.ClientCredentials(ctx, "sid1", "verysecret") // the provider's own client of this kind
	return client{base, name}, err
}

func (u *users) ClientCredentialsTokenRequest(_ context.Context, name string, scopes []string) (op.TokenRequest, error) {
	return &oidc.JWTTokenRequest{Subject: name, Audience: []string{u.audience}, Scopes: scopes}, nil
}

func (u *users) GetPrivateClaimsFromScopes(_ context.Context, name, _ string, _ []string) (map[string]any, error) {
	return map[string]any{"groups": u.named[name].groups, "preferred_username": name, "tenant": "corp"}, nil
}

func main() {
	listen := flag.String("listen", "", "address and port at which it listens by TLS, and which its URL has")
	certificate := flag.String("cert", "", "file of its certificate")
	key := flag.String("key", "", "file of its key")
	audience := flag.String("audience", "", "audience of its tokens")
	list := flag.String("users", "", "users, with spaces between them: NAME:SECRET:GROUP,GROUP")
	flag.Parse()
	named := map[string]user{}
	for _, text := range strings.Fields(*list) {
		parts := strings.SplitN(text, ":", 3)
		if len(parts) < 3 {
			log.Fatalf("%q is no user: write NAME:SECRET:GROUP,GROUP", text)
		}
		named[parts[0]] = user{parts[1], strings.Split(parts[2], ",")}
	}
	issuer := "https://" + *listen
	store := &users{storage.NewStorage(storage.NewUserStore(issuer)), named, *audience}
	fmt.Fprintln(os.Stderr, "issuer", issuer)
	log.Fatal(http.ListenAndServeTLS(*listen, *certificate, *key, exampleop.SetupServer(issuer, store, nil, false)))
}
