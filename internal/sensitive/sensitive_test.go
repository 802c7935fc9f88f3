package sensitive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/sensitive"
)

func TestNamesOfSecrets(t *testing.T) {
	for name, wanted := range map[string]bool{
		"adminPassword": true, "pass": true, "authToken": true, "clientSecret": true, "private": true, "trustId": true, "myCredentials": true,
		"apiKey": true, "API_KEY": true, "key": false, "publicKey": false, "keyPair": false, "keyname": false, "name": false, "?": false, "": false,
	} {
		require.Equal(t, wanted, sensitive.Name(name), name)
	}
	require.True(t, sensitive.Path("users[0].password[1]"))
	require.True(t, sensitive.Path("credentials.user"))
	require.False(t, sensitive.Path("applications[0].instance.keyname"))
}

func TestTextsGoByTheNearestKeyAndListsByTheirs(t *testing.T) {
	value := map[string]any{"token": []any{"a", []any{"b"}, 1}, "users": []any{map[string]any{"pass": "c", "name": "d"}}, "secrets": map[string]any{"user": "e"}, "none": nil}
	var seen []string
	masked := sensitive.Texts("", value, func(text string) string { seen = append(seen, text); return "*" })
	require.ElementsMatch(t, []string{"a", "b", "c"}, seen)
	require.Equal(t, map[string]any{"token": []any{"*", []any{"*"}, 1}, "users": []any{map[string]any{"pass": "*", "name": "d"}}, "secrets": map[string]any{"user": "e"}, "none": nil}, masked)
}

func TestTextsOfPairsAndOfLines(t *testing.T) {
	mask := func(value any) (any, []string) {
		var seen []string
		return sensitive.Texts("", value, func(text string) string { seen = append(seen, text); return "*" }), seen
	}
	masked, seen := mask([]any{map[string]any{"name": "DB_PASSWORD", "value": "a"}, map[string]any{"name": "DB_USER", "value": "b"}, map[string]any{"name": "token", "value": 1}})
	require.Equal(t, []string{"a"}, seen)
	require.Equal(t, []any{map[string]any{"name": "DB_PASSWORD", "value": "*"}, map[string]any{"name": "DB_USER", "value": "b"}, map[string]any{"name": "token", "value": 1}}, masked)

	masked, seen = mask("db:\n  password: one # a comment\n  'apiKey': \"two words\"\n  user: x\n- token: 'three'\ntokens: [a]\nsecret: |\n  b\nThe password: of whom\npass: \n")
	require.Equal(t, []string{"one", "two words", "three"}, seen)
	require.Equal(t, "db:\n  password: * # a comment\n  'apiKey': \"*\"\n  user: x\n- token: '*'\ntokens: [a]\nsecret: |\n  b\nThe password: of whom\npass: \n", masked)
}
