package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

// The projects of the recorded exchanges.
const (
	goldenDemo  = "719b7bdac0ef48f984b5e18c16ee164a"
	goldenAdmin = "c06600e6e1574f858a04195892a54896"
	goldenOther = "49f7dfa305b04c3aa1131d721aa576de"
)

// exchange is one line of the recording.
type exchange struct {
	Name            string            `json:"name"`
	Method          string            `json:"method"`
	Path            string            `json:"path"`
	RequestHeaders  map[string]string `json:"request_headers"`
	RequestBody     json.RawMessage   `json:"request_body"`
	Status          int               `json:"status"`
	ResponseHeaders map[string]string `json:"response_headers"`
	ResponseBody    any               `json:"response_body"`
}

func goldenExchanges(t *testing.T, wanted func(name string) bool) []exchange {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "test", "golden", "murano-api.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	var list []exchange
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e exchange
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		if wanted(e.Name) {
			list = append(list, e)
		}
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, list)
	return list
}

func TestAnEmbeddedPackageIsPublicAndCannotBeDeleted(t *testing.T) {
	server := newServer(t)
	send := func(method, path, token string) *httptest.ResponseRecorder {
		return server.send(method, path, map[string]string{"X-Auth-Token": token}, nil)
	}
	path := "/v1/catalog/packages/" + catalog.EmbeddedID("io.murano")
	for _, token := range []string{"{token:demo}", "{token:admin}"} {
		answer := send(http.MethodDelete, path, token)
		require.Equal(t, http.StatusForbidden, answer.Code)
		require.Contains(t, answer.Body.String(), "comes with Burano")
		require.Equal(t, http.StatusOK, send(http.MethodGet, path, token).Code)
		answer = send(http.MethodGet, path+"/download", token)
		require.Equal(t, "application/octet-stream", answer.Header().Get("Content-Type"))
		p, err := catalog.ReadZip(bytes.NewReader(answer.Body.Bytes()), int64(answer.Body.Len()))
		require.NoError(t, err)
		require.Equal(t, "io.murano", p.FullName())
		require.False(t, p.Embedded(), "what is uploaded again is no embedded package")
	}
}

func TestAnUploadBeyondTheLimitIsRefused(t *testing.T) {
	server := newServer(t)
	for _, size := range []int{catalog.MaxUpload + 1, 2 * catalog.MaxUpload} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		part, err := w.CreateFormFile("file", "p.zip")
		require.NoError(t, err)
		_, err = part.Write(make([]byte, size))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		answer := server.send(http.MethodPost, "/v1/catalog/packages",
			map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": w.FormDataContentType()}, body.Bytes())
		require.Equal(t, http.StatusBadRequest, answer.Code)
		require.Contains(t, answer.Body.String(), "The limit is 5 Mb")
	}
}
