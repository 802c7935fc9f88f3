package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/secret"
)

func TestAKnownSecretIsHiddenHoweverItIsWritten(t *testing.T) {
	const password = "p<a>ss & 'wörd' \"quoted\"\\ 100%\tend"
	var known secret.Known
	require.Equal(t, "of "+password, known.Hide("of "+password), "nothing is known yet")
	known.Note("adminPassword", password)
	written, err := json.Marshal(map[string]any{"a": password})
	require.NoError(t, err)
	for name, text := range map[string]string{
		"as it is": password, "in a longer text": "before" + password + "after", "twice": password + password, "in JSON": string(written),
		"in Go": fmt.Sprintf("%q", password), "in a URL": "http://x/?p=" + url.QueryEscape(password) + "&q", "in a path": url.PathEscape(password),
		"in base64":   base64.StdEncoding.EncodeToString([]byte(password)),
		"in Python":   `{'a': 'p<a>ss & \'wörd\' "quoted"\\ 100%\tend'}`,
		"in an error": fmt.Errorf("it failed: %w", errors.New(password)).Error(),
	} {
		hidden := known.Hide(text)
		require.Contains(t, hidden, secret.Mark, name)
		require.NotContains(t, hidden, "ss & ", name)
		require.NotContains(t, hidden, "quoted", name)
	}
	require.Equal(t, "before"+secret.Mark+"after", known.Hide("before"+password+"after"))
}

func TestWhatStandsUnderTheNameOfASecretIsOne(t *testing.T) {
	var known secret.Known
	known.Note("", map[string]any{
		"?":    map[string]any{"id": "0123456789", "type": "io.example.Password"},
		"name": "an ordinary name", "password": "in the model", "port": 8080, "dbPasswords": []any{"first of them", "second one"},
		"users": []any{map[string]any{"name": "somebody", "apiKey": "of somebody"}}, "credentials": map[string]any{"user": "not a secret", "secretKey": "below a map"},
		"privateKey": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\nsecond line\n-----END PRIVATE KEY-----\n", "token": "short", "secretNumber": 12345678,
		"gcloudKey": "of the registry", "publicKey": "for everybody", "key": "of a pair of values", "keyname": "my-keypair",
	})
	for _, value := range []string{"in the model", "first of them", "second one", "of somebody", "below a map", "of the registry", "MC4CAQAwBQYDK2VwBCIEIA", "second line"} {
		require.Equal(t, "x "+secret.Mark+" x", known.Hide("x "+value+" x"), value)
	}
	const rest = "an ordinary name, 0123456789 of io.example.Password, somebody, not a secret, short, for everybody, of a pair of values, my-keypair, -----BEGIN PRIVATE KEY-----"
	require.Equal(t, rest, known.Hide(rest))
	require.Equal(t, map[string]any{"a": []any{secret.Mark, int64(1), nil}, "k" + secret.Mark: "short"},
		known.HideIn(map[string]any{"a": []any{"second one", int64(1), nil}, "ksecond one": "short"}))
	require.Nil(t, known.HideIn(nil))
}

func TestOfTwoSecretsTheLongerGoesFirst(t *testing.T) {
	var known secret.Known
	known.Note("password", "correct horse")
	require.Equal(t, secret.Mark+" battery", known.Hide("correct horse battery"))
	known.Note("password", "correct horse battery")
	require.Equal(t, secret.Mark, known.Hide("correct horse battery"))
	require.Equal(t, secret.Mark+" bat", known.Hide("correct horse bat"))
}

func TestOfWhatBuranoKeepsOnlyTheKeysAreSecret(t *testing.T) {
	key, certificate := "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAbcdef\n-----END PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\nMIIBnjCCAUWgAwIBAgI\n-----END CERTIFICATE-----\n"
	raw := bytes.Repeat([]byte{200}, 32)
	document, err := json.Marshal(map[string]any{"pair": map[string]any{"key": []byte(key), "certificate": []byte(certificate)}, "encryption": raw,
		"server": "4e2f6d1a-33c1-4c8e-9d84-2b8f4d1c6a10", "public": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8"})
	require.NoError(t, err)
	var known secret.Known
	known.AddStored(document)
	known.AddStored([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAA\n-----END OPENSSH PRIVATE KEY-----"))
	for _, value := range []string{"MC4CAQAwBQYDK2VwBCIEIAbcdef", base64.StdEncoding.EncodeToString(raw), "b3BlbnNzaC1rZXktdjEAAAA", strings.ReplaceAll(key, "\n", `\n`)} {
		require.Contains(t, known.Hide(value), secret.Mark, value)
	}
	for _, value := range []string{"MIIBnjCCAUWgAwIBAgI", "4e2f6d1a-33c1-4c8e-9d84-2b8f4d1c6a10", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8"} {
		require.Equal(t, value, known.Hide(value))
	}
}

type shy struct{ word string }

func (s shy) LogValue() slog.Value { return slog.GroupValue(slog.String("word", s.word)) }

func TestALoggerTellsNoSecret(t *testing.T) {
	var log bytes.Buffer
	var known secret.Known
	logger := known.Logger(slog.New(slog.NewJSONHandler(&log, nil))).With("server", "one")
	known.Add("correct horse")
	logger.Info("the correct horse", "text", "a correct horse", "error", errors.New("no correct horse"), slog.Group("group", "inner", "correct horse"),
		"list", []string{"correct horse"}, "later", shy{"correct horse"}, "number", 5)
	logger.WithGroup("g").With("more", "correct horse").Info("again", "n", 1)
	require.NotContains(t, log.String(), "correct horse")
	require.Equal(t, 7, strings.Count(log.String(), secret.Mark), log.String())
	require.Contains(t, log.String(), `"server":"one"`)
	require.Contains(t, log.String(), `"number":5`)
	require.Contains(t, log.String(), `"g":{"more":"`+secret.Mark+`","n":1}`)
}

func TestSecretsAreLearntWhileTextsAreHidden(t *testing.T) {
	var known secret.Known
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			value := fmt.Sprintf("secret number %03d", i)
			known.Add(value)
			if hidden := known.Hide(value); hidden != secret.Mark {
				t.Errorf("%s became %s", value, hidden)
			}
		})
	}
	all.Wait()
}
