package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysAndDatesOfAFileAreTextsAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environment.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`name: case-number
applications:
- ?: {type: case.dup}
  name: one
  labels: &labels {80: web, true: yes, 1.50: a, 2024-05-03: day, 0x10: hex}
- {?: {type: case.dup, id: two}, made: 2024-05-03, of: {1: {2: [{3: x}]}}, labels: {<<: *labels, 81: other}, first: &one 1, byNumber: {*one : 1}}
- {
    name: three, ?:
      {type: case.dup}}
`), 0o600))
	file, err := ReadEnvironmentFile(path)
	require.NoError(t, err)
	written, err := json.Marshal(file.Applications)
	require.NoError(t, err, "what the server is asked with")
	require.JSONEq(t, `[
		{"?": {"type": "case.dup"}, "name": "one", "labels": {"80": "web", "true": "yes", "1.50": "a", "2024-05-03": "day", "0x10": "hex"}},
		{"?": {"type": "case.dup", "id": "two"}, "made": "2024-05-03", "of": {"1": {"2": [{"3": "x"}]}},
			"labels": {"80": "web", "true": "yes", "1.50": "a", "2024-05-03": "day", "0x10": "hex", "81": "other"}, "first": 1, "byNumber": {"1": 1}},
		{"?": {"type": "case.dup"}, "name": "three"}]`, string(written))
}

func TestKeysThatJSONCannotHaveAreErrorsWithFileAndLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environment.yaml")
	for text, says := range map[string]string{
		"  labels:\n    [1, 2]: x\n":        ":5: a key is a text, and no list or mapping",
		"  labels: {{a: b}: x}\n":           ":4: a key is a text, and no list or mapping",
		"  labels: {~: x}\n":                ":4: a key is empty, or null",
		"  labels:\n    null: x\n":          ":5: a key is empty, or null",
		"  labels:\n    1: x\n    \"1\": y": `:6: mapping key "1" already defined at line 5`,
		"  size: .inf\n":                    ":4: .inf is no number that a model can have",
		"  list:\n  - .nan\n":               ":5: .nan is no number that a model can have",
	} {
		require.NoError(t, os.WriteFile(path, []byte("name: a\napplications:\n- ?: {type: A}\n"+text), 0o600))
		_, err := ReadEnvironmentFile(path)
		require.ErrorContains(t, err, path+says, text)
		_, err = ReadDocuments([]string{path}, nil)
		require.ErrorContains(t, err, path+says, text)
	}
}
