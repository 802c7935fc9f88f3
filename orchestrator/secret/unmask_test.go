package secret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/secret"
)

func TestAMarkKeepsTheSecretOfItsObjectAndPath(t *testing.T) {
	object := func(id string, properties map[string]any) map[string]any {
		properties["?"] = map[string]any{"id": id, "type": "org.App"}
		return properties
	}
	deployed := func() map[string]any {
		return map[string]any{"services": []any{
			object("a", map[string]any{"password": "one", "users": []any{map[string]any{"name": "me", "token": "t1"}, map[string]any{"name": "you", "token": "t2"}},
				"values": "user: admin\npassword: deep # kept\nport: 1\n", "keys": map[string]any{"apiKey": "k"}}),
			object("b", map[string]any{"password": "two", "env": []any{map[string]any{"name": "DB_PASSWORD", "value": "three"}}}),
		}}
	}
	masked := secret.Mask(deployed())
	require.NotEqual(t, deployed(), masked)
	services := masked["services"].([]any)
	services[0], services[1] = services[1], services[0] // the order of objects decides nothing
	users := services[1].(map[string]any)["users"].([]any)
	users[0], users[1] = users[1], users[0]
	require.NoError(t, secret.Unmask(masked, nil, deployed()))
	wanted := deployed()
	list := wanted["services"].([]any)
	list[0], list[1] = list[1], list[0]
	users = list[1].(map[string]any)["users"].([]any)
	users[0], users[1] = users[1], users[0]
	require.Equal(t, wanted, masked)

	// Other lines of a text may change; parts without a secret are reported, each by its path.
	edited := map[string]any{"services": []any{object("a", map[string]any{"values": "user: root\npassword: *** SANITIZED *** # kept\n", "about": "logs show *** SANITIZED *** there"})}}
	require.NoError(t, secret.Unmask(edited, deployed()))
	require.Equal(t, "user: root\npassword: deep # kept\n", edited["services"].([]any)[0].(map[string]any)["values"])

	err := secret.Unmask(map[string]any{"services": []any{object("new", map[string]any{"password": secret.Mark}), object("b", map[string]any{"other": []any{secret.Mark}})}}, deployed())
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.ErrorContains(t, err, `services[0].password is "*** SANITIZED ***"`)
	require.ErrorContains(t, err, `services[1].other[0] is "*** SANITIZED ***"`)
	require.ErrorContains(t, secret.UnmaskNothing("password", secret.Mark), "password is")
	require.NoError(t, secret.UnmaskNothing("text", "plain"))
}
