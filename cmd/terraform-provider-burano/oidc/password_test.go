package oidc

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"
	"github.com/stretchr/testify/require"
)

// issuePasswords starts a provider that takes users' passwords from clients (RFC 6749, 4.3), which the other one does not. It has the user anna, and the
// clients corp, which has a secret, and public.
func issuePasswords(t *testing.T) string {
	clients := store.NewClientStore()
	require.NoError(t, clients.Set("corp", &models.Client{ID: "corp", Secret: "a secret: +%"}))
	require.NoError(t, clients.Set("public", &models.Client{ID: "public", Public: true}))
	manager := manage.NewDefaultManager()
	manager.MustTokenStorage(store.NewMemoryTokenStore())
	manager.MapClientStorage(clients)
	provider := server.NewServer(server.NewConfig(), manager)
	provider.SetAllowedGrantType(oauth2.PasswordCredentials)
	provider.SetClientInfoHandler(func(r *http.Request) (id, secret string, err error) {
		if user, password, basic := r.BasicAuth(); basic { // which are encoded as in a form (RFC 6749, 2.3.1)
			if id, err = url.QueryUnescape(user); err == nil {
				secret, err = url.QueryUnescape(password)
			}
			return id, secret, err
		}
		return server.ClientFormHandler(r)
	})
	provider.SetPasswordAuthorizationHandler(func(_ context.Context, _, user, password string) (string, error) {
		if user != "anna" || password != "right: +%" {
			return "", errors.ErrInvalidGrant
		}
		return user, nil
	})

	routes := http.NewServeMux()
	listener := httptest.NewServer(routes)
	t.Cleanup(listener.Close)
	answer := func(w http.ResponseWriter, body map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		require.NoError(t, json.NewEncoder(w).Encode(body))
	}
	routes.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": listener.URL, "token_endpoint": listener.URL + "/token", "userinfo_endpoint": listener.URL + "/userinfo"})
	})
	routes.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) { require.NoError(t, provider.HandleTokenRequest(w, r)) })
	routes.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) {
		token, err := provider.ValidationBearerToken(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		answer(w, map[string]any{"preferred_username": token.GetUserID()})
	})
	return listener.URL
}
