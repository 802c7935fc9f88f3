package gate

import (
	"errors"
	"net/http"
	"time"
)

// chunk is how many bytes of an answer a client must take within the time that it has for them.
const chunk = 64 << 10

// Paced disconnects clients that do not read: each 64 KiB of an answer, and its rest, must be read within the time, or the connection (the stream, in
// HTTP/2) ends. So an answer of any length is sent, and a client that reads a byte now and then holds none for ever.
func Paced(each time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &paced{ResponseWriter: w, controller: http.NewResponseController(w), each: each}
		if r.ContentLength != 0 {
			p.extend() // to read a body may write "100 Continue"
		}
		next.ServeHTTP(p, r)
		if time.Since(p.extended) > each/16 {
			p.extend() // for an answer without a body, and for the last bytes of a buffer
		}
	})
}

type paced struct {
	http.ResponseWriter
	controller *http.ResponseController
	each       time.Duration
	extended   time.Time
}

// extend renews the client's time. It is called before anything is written, so that no deadline of a former request on the same connection
// ends a later one. A writer without deadlines, as in tests, has no slow client either.
func (p *paced) extend() {
	p.extended = time.Now()
	_ = p.controller.SetWriteDeadline(p.extended.Add(p.each))
}

func (p *paced) Write(text []byte) (written int, err error) {
	for {
		part := text[:min(len(text), chunk)]
		p.extend()
		n, err := p.ResponseWriter.Write(part)
		written += n
		if text = text[n:]; err != nil || len(text) == 0 || n < len(part) {
			return written, err
		}
	}
}

// FlushError is for http.ResponseController.
func (p *paced) FlushError() error {
	p.extend()
	if err := p.controller.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Flush is for http.Flusher.
func (p *paced) Flush() { _ = p.FlushError() }

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
