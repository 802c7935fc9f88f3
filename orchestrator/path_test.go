package orchestrator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

func model(t testing.TB, text string) map[string]any {
	var value map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	return value
}

const twoServices = `{"services": [{"?": {"id": "a"}, "n": {"x": 1}, "parts": [{"?": {"id": "p"}}]}, {"?": {"id": "b"}}]}`

func TestPathsWalkByKeyIdAndIndex(t *testing.T) {
	objects := model(t, twoServices)
	for path, want := range map[string]any{"services/a/n/x": 1.0, "services/0/n/x": 1.0, "services/1/?/id": "b", "services/a/parts/p/?/id": "p"} {
		value, found := lookUp(objects, strings.Split(path, "/"))
		require.True(t, found, path)
		require.Equal(t, want, value, path)
	}
	for _, path := range []string{"services/c", "services/2", "services/-1", "services/a/n/x/y", "nope", "services/99999999999999999999"} {
		_, found := lookUp(objects, strings.Split(path, "/"))
		require.False(t, found, path)
	}
}

func TestElementsOfListsAreReplacedByIndexOnlyAndRemovedByEither(t *testing.T) {
	objects := model(t, twoServices)
	require.Error(t, replaceAt(objects, []string{"services", "a"}, "new"))
	require.NoError(t, replaceAt(objects, []string{"services", "1"}, "new"))
	require.NoError(t, replaceAt(objects, []string{"services", "a", "n", "y"}, 2))
	require.Error(t, replaceAt(objects, []string{"services", "zzz", "n"}, 2))
	require.NoError(t, removeAt(objects, []string{"services", "a", "parts", "p"}))
	require.NoError(t, removeAt(objects, []string{"services", "1"}))
	require.Error(t, removeAt(objects, []string{"services", "1"}))
	require.Equal(t, model(t, `{"services": [{"?": {"id": "a"}, "n": {"x": 1, "y": 2}, "parts": []}]}`), jsonable(t, objects))
	require.NoError(t, removeAt(objects, []string{"services", "a"}))
	require.Equal(t, []any{}, objects["services"])
}

func jsonable(t *testing.T, value any) map[string]any {
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return model(t, string(text))
}

func FuzzPaths(f *testing.F) {
	f.Add(twoServices, "services/a/n")
	f.Add(`{"services": {"0": []}}`, "services/0/0")
	f.Fuzz(func(t *testing.T, text, joined string) {
		path := strings.Split(joined, "/")
		for _, change := range []func(map[string]any) error{
			func(m map[string]any) error { return replaceAt(m, path, "put") },
			func(m map[string]any) error { return removeAt(m, path) },
		} {
			var objects map[string]any
			if json.Unmarshal([]byte(text), &objects) != nil || objects == nil {
				return
			}
			_, found := lookUp(objects, path)
			if err := change(objects); err == nil {
				_, err := json.Marshal(objects)
				require.NoError(t, err, "what is stored is still a document")
			} else if found && len(path) > 0 {
				_, still := lookUp(objects, path)
				require.True(t, still, "a change that is refused changes nothing")
			}
			objectIDs(objects)
			secret.Mask(objects)
		}
	})
}

func TestSecretsAreMaskedWhereverTheyAre(t *testing.T) {
	original := model(t, `{"adminPassword": "x", "token": "", "n": 1, "users": [{"pass": ["a", "b"], "name": "c"}], "apiSecretKey": {"k": "v", "secret": "w"}}`)
	require.Equal(t, model(t, `{"adminPassword": "*** SANITIZED ***", "token": "", "n": 1, "users": [{"pass": ["*** SANITIZED ***", "*** SANITIZED ***"], "name": "c"}], "apiSecretKey": {"k": "v", "secret": "*** SANITIZED ***"}}`), secret.Mask(original))
	require.Equal(t, "x", original["adminPassword"])
}

func TestADeploymentShowsNoSecretOfItsModelOrOfItsAction(t *testing.T) {
	task := store.Task{Action: store.Action{ObjectID: "a", Method: "reset", Args: map[string]any{"newPassword": "x", "times": int64(2)}},
		Objects: store.Document{"applications": []any{map[string]any{"token": "x"}}}}
	list, err := New(Config{}).Deployments().list(t.Context(), []store.Task{task}, nil)
	require.NoError(t, err)
	shown := list[0]
	require.Equal(t, map[string]any{"newPassword": secret.Mark, "times": int64(2)}, shown.Action.Args)
	require.Equal(t, map[string]any{"services": []any{map[string]any{"token": secret.Mark}}}, shown.Description)
	require.Equal(t, "x", task.Action.Args["newPassword"], "the task itself keeps it")
}

func TestAListOfDeploymentsTellsNoPasswordThatAnActionReturned(t *testing.T) {
	for method, results := range map[string][2]any{
		"showPassword": {"made by the class", secret.Mark},
		"getAccess":    {map[string]any{"host": "db", "password": "x"}, map[string]any{"host": "db", "password": secret.Mark}},
		"shout":        {"hello", "hello"},
	} {
		task := store.Task{Action: store.Action{ObjectID: "a", Method: method}, Result: store.Document{"isException": false, "result": results[0]}}
		list, err := New(Config{}).Deployments().list(t.Context(), []store.Task{task}, nil)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"isException": false, "result": results[1]}, list[0].Result, method)
		require.Equal(t, results[0], task.Result["result"], "who asked is told")
	}
}
