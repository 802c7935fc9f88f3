package dashboard

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func ask(t *testing.T, handler http.Handler, method, path string, headers ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Result()
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	text := make([]byte, 1<<16)
	n, _ := response.Body.Read(text)
	return string(text[:n])
}

func TestTheDashboardIsServed(t *testing.T) {
	files := fstest.MapFS{
		"index.html":       {Data: []byte("<p>the page</p>")},
		"assets/app.js":    {Data: []byte("plain")},
		"assets/app.js.br": {Data: []byte("packed by brotli")},
		"assets/app.js.gz": {Data: []byte("packed by gzip")},
		".gitkeep":         {},
	}
	pages := handler(files)

	page := ask(t, pages, "GET", "/dashboard/")
	require.Equal(t, "<p>the page</p>", body(t, page))
	require.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"))
	require.Equal(t, "no-cache", page.Header.Get("Cache-Control"))
	require.NotContains(t, page.Header.Get("Content-Security-Policy"), "unsafe")
	for _, deep := range []string{"/dashboard/environments/1234/deployments", "/dashboard/.gitkeep", "/dashboard/../index.html"} {
		require.Equal(t, "<p>the page</p>", body(t, ask(t, pages, "GET", deep)), deep)
	}

	for encodings, expected := range map[string]string{"": "plain", "gzip, deflate": "packed by gzip", "gzip, br;q=1.0": "packed by brotli"} {
		file := ask(t, pages, "GET", "/dashboard/assets/app.js", "Accept-Encoding", encodings)
		require.Equal(t, expected, body(t, file), encodings)
		require.Contains(t, file.Header.Get("Content-Type"), "text/javascript")
		require.Contains(t, file.Header.Get("Cache-Control"), "immutable")
	}
	require.Equal(t, 404, ask(t, pages, "GET", "/dashboard/assets/former.js").StatusCode, "a file of a former release is no page")
	require.Equal(t, 405, ask(t, pages, "POST", "/dashboard/").StatusCode)
}

func TestWithoutTheBuiltPagesOneSaysHowToBuildThem(t *testing.T) {
	page := ask(t, handler(fstest.MapFS{".gitkeep": {}}), "GET", "/dashboard/catalog")
	require.Equal(t, 503, page.StatusCode)
	require.Contains(t, body(t, page), "make dashboard")
}

func TestTheAPIIsServedBeside(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("api " + r.URL.Path)) })
	all := Beside(api)
	require.Equal(t, "api /v1//environments", body(t, ask(t, all, "GET", "/v1//environments")))
	require.Equal(t, "api /", body(t, ask(t, all, "GET", "/", "Accept", "application/json")))
	for _, path := range []string{"/", "/dashboard"} {
		led := ask(t, all, "GET", path, "Accept", "text/html,application/xhtml+xml")
		require.Equal(t, 302, led.StatusCode)
		require.Equal(t, Path, led.Header.Get("Location"))
	}
}

func TestTheFolderOfBuiltPagesIsEmbedded(t *testing.T) {
	_, err := fs.Stat(built, "dist/.gitkeep")
	require.NoError(t, err)
}
