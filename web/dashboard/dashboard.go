// Package dashboard serves the web dashboard: the single-page application that is built into the program.
package dashboard

import (
	"bytes"
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// built is what `npm run build` makes; in a program that was built without Node it holds no page.
//
//go:embed all:dist
var built embed.FS

// Path begins the dashboard's addresses.
const Path = "/dashboard/"

// policy lets a page load resources of this server only: no script or style inside of a page or from elsewhere (https://www.w3.org/TR/CSP3/). Topology's
// export and packages' logos are the images.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// missing is the page of a program that was built without the dashboard.
const missing = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Burano</title>
<h1>This Burano was built without its dashboard</h1>
<p>Build it with Node 20 or later: <code>make dashboard build</code>. The API and the command line work without it.</p>
</html>
`

// Beside serves the dashboard below Path, and everything else by api. A person who opens the server's address in a browser is led to it.
func Beside(api http.Handler) http.Handler {
	pages := Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
		switch {
		case strings.HasPrefix(r.URL.Path, Path):
			pages.ServeHTTP(w, r)
		case r.URL.Path+"/" == Path, r.URL.Path == "/" && person:
			http.Redirect(w, r, Path, http.StatusFound)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// Handler serves the dashboard below Path. Every address that is no file of it is answered with its one page, which knows its own
// addresses.
func Handler() http.Handler {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return handler(files)
}

func handler(files fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the dashboard is only read: its calls go to the API", http.StatusMethodNotAllowed)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		name := strings.TrimPrefix(path.Clean(r.URL.Path), strings.TrimSuffix(Path, "/"))
		name = strings.TrimPrefix(name, "/")
		if name == "" || !serve(w, r, files, name) {
			if strings.HasPrefix(name, "assets/") {
				http.NotFound(w, r)
				return
			}
			if !serve(w, r, files, "index.html") {
				header.Set("Content-Type", "text/html; charset=utf-8")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(missing)) // a broken connection is the reader's to notice
			}
		}
	})
}

// encodings are the compressed forms of files beside their plain form, the best first.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

// serve answers with a file, compressed if the browser accepts that, and reports whether there is one of that name.
func serve(w http.ResponseWriter, r *http.Request, files fs.FS, name string) bool {
	plain, err := fs.ReadFile(files, name)
	if err != nil || strings.HasPrefix(path.Base(name), ".") {
		return false
	}
	header := w.Header()
	header.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	header.Set("Vary", "Accept-Encoding")
	// Files below assets/ have a hash in their names; the page that names them is asked for each time.
	header.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "assets/") {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	for _, encoding := range encodings {
		packed, err := fs.ReadFile(files, name+encoding.suffix)
		if err == nil && accepts(r, encoding.name) {
			header.Set("Content-Encoding", encoding.name)
			plain = packed
			break
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(plain))
	return true
}

func accepts(r *http.Request, encoding string) bool {
	for _, one := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(one), ";"); name == encoding {
			return true
		}
	}
	return false
}
