// Package answer reads and writes the JSON of the local cloud's services.
package answer

import (
	"encoding/json"
	"io"
	"net/http"
)

// maxBody is the largest request body that is read, in bytes.
const maxBody = 1 << 20

// JSON answers with a status and a body.
func JSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the status is sent: a broken connection is the client's to notice
}

// Read reads a request body.
func Read(r *http.Request, into any) error {
	return json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(into)
}
