package envelope

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheKeyOpensWhatIsSealedForIt(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	again, err := ParseKey(key.String())
	require.NoError(t, err)
	recipient, err := ParseRecipient(again.Recipient())
	require.NoError(t, err)
	seal := func(value any) string {
		sealed, err := recipient.Seal(value)
		require.NoError(t, err)
		require.True(t, Is(sealed))
		return sealed
	}
	document := map[string]any{"password": seal("geheim"), "list": []any{seal(map[string]any{"n": 3}), "plain", true, nil},
		"config": "user: me\npassword: " + seal("geheim") + "\ntoken: \"" + seal("t o k e n") + "\"\n"}
	opened, err := key.Open(document)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"password": "geheim", "list": []any{map[string]any{"n": json.Number("3")}, "plain", true, nil},
		"config": "user: me\npassword: geheim\ntoken: \"t o k e n\"\n"}, opened)
	require.NotEqual(t, seal("geheim"), document["password"], "each is sealed anew")

	other, err := NewKey()
	require.NoError(t, err)
	_, err = other.Open(document)
	require.ErrorIs(t, err, ErrOther)
	_, err = key.Open(map[string]any{"a": []any{document["password"].(string)[:60]}})
	require.ErrorContains(t, err, ".a[0]: the sealed value is damaged")
	_, err = key.Open("password: " + seal(3))
	require.ErrorContains(t, err, "no text")
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "age1nothing", strings.Repeat("A", 100)} {
		_, err := ParseKey(text)
		require.Error(t, err, text)
		_, err = ParseRecipient(text)
		require.Error(t, err, text)
	}
}

func TestASealedFileThatWasChangedOrCutIsNotRead(t *testing.T) {
	key, err := NewKey()
	require.NoError(t, err)
	recipient, err := ParseRecipient(key.Recipient())
	require.NoError(t, err)
	var file bytes.Buffer
	writer, err := recipient.Writer(&file)
	require.NoError(t, err)
	content := bytes.Repeat([]byte("content "), 20_000) // more than two pieces of age
	_, err = writer.Write(content)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	read := func(key Key, file []byte) ([]byte, error) {
		reader, err := key.Reader(bytes.NewReader(file))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(reader)
	}
	got, err := read(key, file.Bytes())
	require.NoError(t, err)
	require.Equal(t, content, got)

	other, err := NewKey()
	require.NoError(t, err)
	_, err = read(other, file.Bytes())
	require.ErrorIs(t, err, ErrOther)
	_, err = read(key, content)
	require.ErrorContains(t, err, "it is no file that was sealed for a key")
	for _, at := range []int{file.Len() / 2, file.Len() - 1} {
		_, err = read(key, file.Bytes()[:at])
		require.ErrorIs(t, err, ErrDamaged)
		changed := bytes.Clone(file.Bytes())
		changed[at] ^= 1
		_, err = read(key, changed)
		require.ErrorIs(t, err, ErrDamaged)
	}
	var short bytes.Buffer
	writer, err = recipient.Writer(&short)
	require.NoError(t, err)
	_, err = writer.Write(content)
	require.NoError(t, err)
	_, err = read(key, short.Bytes()) // of a writer that died
	require.ErrorIs(t, err, ErrDamaged)
}
