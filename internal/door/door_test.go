package door_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/door"
)

func TestASourceOfExactlyTheLimitIsReadAndALargerOneIsNot(t *testing.T) {
	text, err := door.ReadAll(strings.NewReader("12345"), 5, "the text")
	require.NoError(t, err)
	require.Equal(t, "12345", string(text))
	text, err = door.ReadAll(strings.NewReader("123456"), 5, "the text")
	require.EqualError(t, err, "the text has more than 5 bytes")
	require.True(t, door.IsExceeded(err))
	require.Len(t, text, 5)
}

func TestASourceWithoutEndIsLeft(t *testing.T) {
	_, err := door.ReadAll(endless{}, 1<<20, "the answer of etcd")
	require.EqualError(t, err, "the answer of etcd has more than 1 MiB")
	buffer := &door.Buffer{Limit: 1 << 10, What: "the script's output"}
	_, err = io.Copy(buffer, endless{})
	require.EqualError(t, err, "the script's output has more than 1 KiB")
	require.Equal(t, bytes.Repeat([]byte("x"), 1<<10), buffer.Bytes())
}

func TestAWriterTakesItsLimitAndNoMore(t *testing.T) {
	kept := &bytes.Buffer{}
	to := door.Writer(kept, 5, "the file")
	n, err := to.Write([]byte("123"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = to.Write([]byte("4567"))
	require.EqualError(t, err, "the file has more than 5 bytes")
	require.Equal(t, 2, n)
	require.Equal(t, "12345", kept.String())
}

type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = 'x'
	}
	return len(into), nil
}

func TestAliasesCountWhereTheyStand(t *testing.T) {
	var within any
	require.NoError(t, door.YAML([]byte("a: &a [1, 2]\nb: *a\n"), &within, door.Bounds{}))
	require.Equal(t, map[string]any{"a": []any{1, 2}, "b": []any{1, 2}}, within)

	laughs := "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		laughs += "b" + string(rune('0'+i)) + ": &a" + string(rune('1'+i)) + " [" + strings.TrimSuffix(strings.Repeat("*a"+string(rune('0'+i))+", ", 10), ", ") + "]\n"
	}
	require.True(t, door.IsExceeded(door.YAML([]byte(laughs), &within, door.Bounds{})))

	long := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a, ", 100), ", ") + "]\n"
	require.ErrorContains(t, door.YAML([]byte(long), &within, door.Bounds{}), "line 1: it has more than 64 MiB, aliases written out")
}

func TestDepthOfADocumentIsBounded(t *testing.T) {
	var node yaml.Node
	require.NoError(t, door.YAML([]byte(strings.Repeat("[", 90)+strings.Repeat("]", 90)), &node, door.Bounds{}))
	require.ErrorContains(t, door.YAML([]byte(strings.Repeat("[", 200)+strings.Repeat("]", 200)), &node, door.Bounds{}), "nested deeper than 100 levels")
}

func TestOneTextInManyPlacesCountsInEach(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	list := make([]any, 10_000)
	for i := range list {
		list[i] = text
	}
	require.EqualError(t, door.Written(list, 64<<20, "the result"), "the result has more than 64 MiB")
	require.NoError(t, door.Written(list[:10], 64<<20, "the result"))
	itself := map[string]any{}
	itself["self"] = itself
	require.Error(t, door.Written(itself, 64<<20, "the result"))
}

func TestADocumentOfVeryManyValuesIsNotParsed(t *testing.T) {
	for _, text := range []string{"[" + strings.Repeat("a,", 4<<20), strings.Repeat("-\n", 4<<20), strings.Repeat("? \n", 4<<20), "[" + strings.Repeat("[],", 4<<20), "{" + strings.Repeat("a,", 4<<20)} {
		var within yaml.Node
		require.EqualError(t, door.YAML([]byte(text), &within, door.Bounds{}), "the document has more than 100000 values")
	}
	var within map[string]string
	script := "text: |\n" + strings.Repeat("  echo hello, world: it is [fine] - is it\n", 50_000)
	require.NoError(t, door.YAML([]byte(script), &within, door.Bounds{}))
}

func TestAMapHasABoundOfKeys(t *testing.T) {
	var text strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&text, "k%d: 1\n", i)
	}
	var within map[string]int
	require.ErrorContains(t, door.YAML([]byte(text.String()), &within, door.Bounds{}), "a map has more than 20000 keys")
}

func TestWhatStandsInStructsCountsAsItIsWritten(t *testing.T) {
	type part struct {
		Name  string    `json:"name"`
		Raw   []byte    `json:"raw"`
		Made  time.Time `json:"made"`
		Any   any       `json:"any"`
		Next  *part     `json:"next"`
		Words []string  `json:"words"`
		Texts map[string]string
	}
	word := strings.Repeat("x", 1<<10)
	value := []part{{Name: word, Raw: []byte(word), Any: []any{word, int64(1)}, Next: &part{Name: word}, Words: []string{word, word}, Texts: map[string]string{"a": word}}}
	size, err := door.Size(value, 1<<20, "it")
	require.NoError(t, err)
	text, err := json.Marshal(value)
	require.NoError(t, err)
	require.InEpsilon(t, len(text), size, 0.1)
	require.EqualError(t, door.Written(value, int64(len(text))*3/4, "the answer"), fmt.Sprintf("the answer has more than %d bytes", len(text)*3/4))

	itself := &part{}
	itself.Next = itself
	require.Error(t, door.Written(itself, 1<<20, "it"))
	many := make([]any, 1000)
	for i := range many {
		many[i] = value
	}
	require.True(t, door.IsExceeded(door.Written(many, 1<<20, "it")))
}
